//! Complete matches: games depend only on the plan, and an interrupted match continues.

use std::{fs, path::Path};

use arena::{
    Player,
    matches::{
        Conduct, GameRecord, MatchFolder, Opening, Plan, Standing, conduct::Ended, notation, openings, play,
    },
    players::Networks,
    statistics::{EloModel, Sprt, SprtSettings, Verdict},
};
use games::{
    Game as _,
    connect_four::{ConnectFour, solver::Solver},
    erased::{Typed, Variant},
    othello::Othello,
    paco_sako::PacoSako,
    registry,
};
use search::{GameKey, Settings, look::Stage};
use tokio_util::sync::CancellationToken;

use super::common;

pub struct Match {
    plan: Plan,
    players: Vec<Player>,
}

impl Match {
    pub fn new(game: &str, written: &[&str], pairs: u64, plies: u32, networks: &mut Networks) -> Self {
        let variant = common::variant(game);
        let openings = openings::random(&*variant, 9, plies, pairs).unwrap();
        Self::from_openings(&*variant, written, openings, networks)
    }

    pub fn from_openings(
        variant: &dyn Variant,
        written: &[&str],
        openings: Vec<Opening>,
        networks: &mut Networks,
    ) -> Self {
        let open = |text: &&str| Player::open(variant.game(), &text.parse().unwrap(), networks).unwrap();
        let players: Vec<Player> = written.iter().map(open).collect();
        let pairs = openings.len() as u64;
        let plan = Plan::new(variant, &players, pairs, 9, openings, 200).unwrap();
        Self { plan, players }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn folder(&self, path: &Path) -> anyhow::Result<MatchFolder> {
        MatchFolder::open(path, &self.plan)
    }

    pub fn play(&self, path: &Path, threads: usize, games: usize) -> Vec<GameRecord> {
        let conduct = Conduct {
            threads,
            games,
            sprt: None,
            budget: None,
            stop: &CancellationToken::new(),
        };
        let mut folder = self.folder(path).unwrap();
        let ended = play(&self.plan, &self.players, &mut folder, conduct, &mut |_| {});
        assert_eq!(ended.unwrap(), Ended::Complete);
        timeless(&folder)
    }
}

/// The games without their durations.
fn timeless(folder: &MatchFolder) -> Vec<GameRecord> {
    let records = folder.records().values().cloned();
    records
        .map(|record| GameRecord {
            milliseconds: 0,
            ..record
        })
        .collect()
}

#[test]
fn games_do_not_depend_on_the_number_of_threads_and_of_games_at_once() {
    let home = tempfile::tempdir().unwrap();
    let run = home.path().join("run");
    common::run::<Othello>(&run, 3);
    let network = format!("{},visits=12", run.to_str().unwrap());
    let wider = format!("{},visits=20,leaves=4,name=wider", run.to_str().unwrap());
    let mut networks = common::networks();
    let three = Match::new(
        Othello::NAME,
        &[&network, &wider, "uct,visits=15"],
        2,
        6,
        &mut networks,
    );
    let alone = three.play(&home.path().join("alone"), 1, 1);
    let together = three.play(&home.path().join("together"), 2, 5);
    assert_eq!(alone.len(), 12);
    assert_eq!(alone, together);
    for record in &alone {
        let end = record.replay(&*three.plan.variant().unwrap()).unwrap();
        assert!(end.outcome().is_some());
        assert_eq!(record.opening, 6);
    }
    // Both games of a pair have the same opening.
    assert!(
        alone
            .chunks(2)
            .all(|pair| pair[0].actions[..6] == pair[1].actions[..6])
    );
}

#[test]
fn an_interrupted_match_continues_and_counts_no_game_twice() {
    let home = tempfile::tempdir().unwrap();
    let mut networks = common::networks();
    let pair = Match::new(
        ConnectFour::NAME,
        &["uct,visits=40", "random"],
        15,
        4,
        &mut networks,
    );
    let whole = pair.play(&home.path().join("whole"), 2, 4);

    let path = home.path().join("interrupted");
    let mut begun = 0;
    for _ in 0..3 {
        let stop = CancellationToken::new();
        let mut folder = pair.folder(&path).unwrap();
        let said = pair.folder(&path).unwrap_err().to_string();
        assert!(said.contains("another process plays the match"), "{said}");
        begun = folder.records().len();
        let conduct = Conduct {
            threads: 2,
            games: 3,
            sprt: None,
            budget: None,
            stop: &stop,
        };
        let ended = play(&pair.plan, &pair.players, &mut folder, conduct, &mut |folder| {
            if folder.records().len() >= begun + 5 {
                stop.cancel();
            }
        });
        assert_eq!(ended.unwrap(), Ended::Stopped);
        drop(folder);
        // As after a kill in the middle of a line.
        let mut text = fs::read_to_string(path.join("games.jsonl")).unwrap();
        text.push_str("{\"game\":29,\"players\":[1,");
        fs::write(path.join("games.jsonl"), text).unwrap();
    }
    assert!(begun >= 10);
    assert_eq!(pair.play(&path, 2, 4), whole);
    let lines = fs::read_to_string(path.join("games.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 30);

    // A longer match of the same players continues with the existing games.
    let longer = Match::new(
        ConnectFour::NAME,
        &["uct,visits=40", "random"],
        20,
        4,
        &mut networks,
    );
    let more = longer.play(&path, 1, 4);
    assert_eq!((more.len(), &more[..30]), (40, whole.as_slice()));

    let another = Match::new(
        ConnectFour::NAME,
        &["uct,visits=41", "random"],
        20,
        4,
        &mut networks,
    );
    let said = another.folder(&path).unwrap_err().to_string();
    assert!(said.contains("holds another match"), "{said}");
    let damaged = lines.replacen("\"opening\":4", "\"opening\":400", 1);
    fs::write(path.join("games.jsonl"), damaged).unwrap();
    let said = format!("{:#}", longer.folder(&path).unwrap_err());
    assert!(
        said.contains("games.jsonl, line 1: the opening is longer"),
        "{said}"
    );
}

#[test]
fn a_test_ends_a_match_and_the_results_add_up() {
    let home = tempfile::tempdir().unwrap();
    let mut networks = common::networks();
    let pair = Match::new(
        ConnectFour::NAME,
        &["uct,visits=60", "random"],
        500,
        4,
        &mut networks,
    );
    let sprt = Sprt::new(SprtSettings {
        elo0: 0.0,
        elo1: 100.0,
        alpha: 0.05,
        beta: 0.05,
        model: EloModel::Logistic,
    })
    .unwrap();
    let conduct = Conduct {
        threads: 2,
        games: 4,
        sprt: Some(&sprt),
        budget: None,
        stop: &CancellationToken::new(),
    };
    let mut folder = pair.folder(home.path()).unwrap();
    let ended = play(&pair.plan, &pair.players, &mut folder, conduct, &mut |_| {}).unwrap();
    assert_eq!(ended, Ended::Decided);
    let standing = Standing::of(&pair.plan, folder.records(), Some(&sprt));
    let test = standing.sprt.as_ref().unwrap();
    assert_eq!(test.verdict, Verdict::Elo1);
    assert!(test.pairs < 200 && test.log_likelihood_ratio >= test.bounds[1]);
    assert_eq!(standing.games[0], folder.records().len() as u64);
    assert!(standing.games[0] < standing.games[1]);
    let one = &standing.pairings[0];
    assert_eq!(one.wins + one.draws + one.losses, standing.games[0]);
    assert!(one.estimate.unwrap().superiority > 0.99);
    let points: f64 = standing.players.iter().map(|player| player.points).sum();
    assert_eq!(points, standing.games[0] as f64);
    assert!(standing.players[0].rating > standing.players[1].rating + 100.0);
    assert_eq!(standing.endings.values().sum::<u64>(), standing.games[0]);
    // The match stays decided.
    let ended = play(&pair.plan, &pair.players, &mut folder, conduct, &mut |_| {}).unwrap();
    assert_eq!(ended, Ended::Decided);
}

/// The values are those of the positions that players of 20 visits reach. Uniform UCT has equal priors and no values.
#[test]
fn luna_has_equal_priors_and_the_values_of_wins_within_a_turn() {
    let mut networks = common::networks();
    let game = registry::find(PacoSako::NAME).unwrap();
    let mut found = [0; 3];
    for written in ["luna,visits=20", "uct,visits=20"] {
        let player = Player::open(game, &written.parse().unwrap(), &mut networks).unwrap();
        let (settings, mut searches) = player.searches(0).unwrap();
        let settings = Settings {
            exact_leaves: false,
            ..settings.clone()
        };
        for game in 0..6 {
            let key = GameKey { run_seed: 3, game };
            let mut root = common::variant(PacoSako::NAME).start(None).unwrap();
            let slot = searches.begin(&*root, settings.clone(), key).unwrap();
            for _ in 0..200 {
                if root.outcome().is_some() {
                    break;
                }
                while !searches.search(slot).is_decided() {
                    assert!(!searches.gather(slot).unwrap(), "no network is asked");
                }
                let mut paths = vec![Vec::new()];
                while let Some(path) = paths.pop() {
                    let Some(look) = searches.search(slot).look(&path) else {
                        continue;
                    };
                    if look.stage == Stage::Terminal {
                        continue;
                    }
                    let mut state = root.copy();
                    path.iter().for_each(|&action| state.play_legal(action));
                    let state = &Typed::<PacoSako>::find(&*state).unwrap().state;
                    let value = look.evaluation.unwrap();
                    if written.starts_with("uct") {
                        assert_eq!(value.get(), 0.0);
                    } else {
                        assert_eq!(value, state.threat_value());
                        let seen = [0.0, 1.0, -0.5].iter().position(|&seen| seen == value.get());
                        found[seen.unwrap()] += 1;
                    }
                    for child in &look.children {
                        assert_eq!(child.prior, 1.0 / look.children.len() as f32);
                        paths.push([&path[..], &[child.action]].concat());
                    }
                }
                let action = searches.search(slot).choose(1.0).unwrap();
                searches.search_mut(slot).advance(action).unwrap();
                root.play(action).unwrap();
            }
            searches.end(slot);
        }
    }
    assert!(found.iter().all(|&count| count > 20), "{found:?}");
}

#[test]
fn a_perfect_player_never_loses_value_and_its_games_can_be_read_back() {
    let home = tempfile::tempdir().unwrap();
    let mut networks = common::networks();
    let pair = Match::new(
        ConnectFour::NAME,
        &["perfect", "uct,visits=50"],
        10,
        16,
        &mut networks,
    );
    let records = pair.play(home.path(), 1, 4);
    let mut solver = Solver::new(8 << 20);
    let mut lost = 0;
    for record in &records {
        let mut state = ConnectFour::EMPTY;
        for (number, &action) in record.actions.iter().enumerate() {
            let is_perfect = record.players[state.to_move().index()] == 0;
            if number >= record.opening && is_perfect {
                let winners = solver.winners(&state);
                let best = winners.iter().flatten().max().copied();
                assert_eq!(winners[action as usize], best);
                if best == Some(-1) {
                    lost += 1;
                    let scores = solver.scores(&state);
                    assert_eq!(scores[action as usize], scores.iter().flatten().max().copied());
                }
            }
            state.play(action).unwrap();
        }
    }
    assert!(lost > 0, "the perfect player was never lost");
    // The numbers in the text are those of the games.
    let text = notation::text(&pair.plan, records.iter());
    let read: Vec<Vec<u32>> = text
        .split("\n\n")
        .filter(|block| !block.is_empty() && !block.starts_with('['))
        .map(|block| {
            block
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect()
        })
        .collect();
    let played: Vec<Vec<u32>> = records.iter().map(|record| record.actions.clone()).collect();
    assert_eq!(read, played);
    assert!(text.contains("[First \"perfect\"]"), "{text}");
    assert!(text.lines().all(|line| line.len() < 80));
}
