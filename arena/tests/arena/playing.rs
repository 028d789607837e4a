//! Complete matches: games depend only on the plan, and an interrupted match continues.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use arena::{
    Player, Spec,
    matches::{
        Conduct, GameRecord, MatchError, MatchFolder, Opening, Plan, Standing,
        conduct::Ended,
        notation, openings,
        plan::{Entrant, SCHEMA},
        play,
    },
    players::Networks,
    statistics::{EloModel, Sprt, SprtSettings, Verdict},
};
use games::{
    Game,
    connect_four::{ConnectFour, solver::Solver},
    othello::Othello,
    paco_sako::PacoSako,
};
use search::{GameKey, Search, Settings};

use super::common;

static GO_ON: AtomicBool = AtomicBool::new(false);

pub struct Match<G: Game> {
    plan: Plan,
    rules: G::Rules,
    players: Vec<Player<G>>,
}

impl<G: Game> Match<G> {
    pub fn new(written: &[&str], pairs: u64, plies: u32, networks: &mut Networks) -> Self {
        let rules = G::Rules::default();
        let openings = openings::random::<G>(&rules, 9, plies, pairs).unwrap();
        Self::from_openings(written, rules, openings, networks)
    }

    pub fn from_openings(
        written: &[&str],
        rules: G::Rules,
        openings: Vec<Opening>,
        networks: &mut Networks,
    ) -> Self {
        let specs: Vec<Spec> = written.iter().map(|text| text.parse().unwrap()).collect();
        let plan = Plan {
            schema: SCHEMA,
            game: G::NAME.into(),
            rules: serde_json::to_value(&rules).unwrap(),
            players: specs
                .iter()
                .map(|spec| Entrant {
                    name: spec.name.clone(),
                    written: spec.written.clone(),
                    version: None,
                    digest: None,
                    search: None,
                })
                .collect(),
            pairs: openings.len() as u64,
            seed: 9,
            openings,
            max_actions: 200,
        };
        plan.check().unwrap();
        let players = specs
            .iter()
            .map(|spec| Player::open(spec, networks).unwrap())
            .collect();
        Self { plan, rules, players }
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn folder(&self, path: &Path) -> Result<MatchFolder, MatchError> {
        MatchFolder::open::<G>(path, &self.plan, &self.rules)
    }

    pub fn play(&self, path: &Path, threads: usize, games: usize) -> Vec<GameRecord> {
        let conduct = Conduct {
            threads,
            games,
            sprt: None,
            stop: &GO_ON,
        };
        let mut folder = self.folder(path).unwrap();
        let ended = play(
            &self.plan,
            &self.rules,
            &self.players,
            &mut folder,
            conduct,
            &mut |_| {},
        );
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
    let three = Match::<Othello>::new(&[&network, &wider, "uct,visits=15"], 2, 6, &mut networks);
    let alone = three.play(&home.path().join("alone"), 1, 1);
    let together = three.play(&home.path().join("together"), 2, 5);
    assert_eq!(alone.len(), 12);
    assert_eq!(alone, together);
    for record in &alone {
        let end = record.replay::<Othello>(&three.rules).unwrap();
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
    let pair = Match::<ConnectFour>::new(&["uct,visits=40", "random"], 15, 4, &mut networks);
    let whole = pair.play(&home.path().join("whole"), 2, 4);

    let path = home.path().join("interrupted");
    let mut begun = 0;
    for _ in 0..3 {
        let stop = AtomicBool::new(false);
        let mut folder = pair.folder(&path).unwrap();
        let said = pair.folder(&path).unwrap_err().to_string();
        assert!(said.contains("another process plays the match"), "{said}");
        begun = folder.records().len();
        let conduct = Conduct {
            threads: 2,
            games: 3,
            sprt: None,
            stop: &stop,
        };
        let ended = play(
            &pair.plan,
            &pair.rules,
            &pair.players,
            &mut folder,
            conduct,
            &mut |progress| {
                if progress.folder.records().len() >= begun + 5 {
                    stop.store(true, Ordering::Relaxed);
                }
            },
        );
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
    let longer = Match::<ConnectFour>::new(&["uct,visits=40", "random"], 20, 4, &mut networks);
    let more = longer.play(&path, 1, 4);
    assert_eq!((more.len(), &more[..30]), (40, whole.as_slice()));

    let another = Match::<ConnectFour>::new(&["uct,visits=41", "random"], 20, 4, &mut networks);
    let said = another.folder(&path).unwrap_err().to_string();
    assert!(said.contains("holds another match"), "{said}");
    let damaged = lines.replacen("\"opening\":4", "\"opening\":400", 1);
    fs::write(path.join("games.jsonl"), damaged).unwrap();
    let said = longer.folder(&path).unwrap_err().to_string();
    assert!(
        said.contains("games.jsonl, line 1: the opening is longer"),
        "{said}"
    );
}

#[test]
fn a_test_ends_a_match_and_the_results_add_up() {
    let home = tempfile::tempdir().unwrap();
    let mut networks = common::networks();
    let pair = Match::<ConnectFour>::new(&["uct,visits=60", "random"], 500, 4, &mut networks);
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
        stop: &GO_ON,
    };
    let mut folder = pair.folder(home.path()).unwrap();
    let ended = play(
        &pair.plan,
        &pair.rules,
        &pair.players,
        &mut folder,
        conduct,
        &mut |_| {},
    )
    .unwrap();
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
    let ended = play(
        &pair.plan,
        &pair.rules,
        &pair.players,
        &mut folder,
        conduct,
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(ended, Ended::Decided);
}

/// The values are those of the positions that players of 20 visits reach. Uniform UCT has equal priors and no values.
#[test]
fn luna_has_equal_priors_and_the_values_of_wins_within_a_turn() {
    let mut networks = common::networks();
    let mut open =
        |written: &str| Player::<PacoSako>::open(&written.parse().unwrap(), &mut networks).unwrap();
    let (luna, uniform) = (open("luna,visits=20"), open("uct,visits=20"));
    let mut found = [0; 3];
    for game in 0..6 {
        let key = GameKey { run_seed: 3, game };
        let settings = Settings {
            exact_leaves: false,
            ..luna.settings().unwrap().clone()
        };
        let start = PacoSako::start(&Default::default(), None).unwrap();
        let mut search = Search::new(start, settings, key);
        let mut evaluators = [luna.evaluator(0).unwrap(), uniform.evaluator(0).unwrap()];
        while search.state().outcome().is_none() && search.state().action_count() < 200 {
            while !search.is_decided() {
                let mut expected = Vec::new();
                search.gather(|leaf| {
                    evaluators
                        .iter_mut()
                        .for_each(|evaluator| evaluator.add(0, &leaf));
                    expected.push((leaf.legal.len(), leaf.state.threat_value()));
                });
                let [luna, uniform] = &mut evaluators;
                let mut leaves = expected.iter();
                uniform
                    .take_known(|_, _, evaluation| {
                        assert_eq!(evaluation.value.get(), 0.0);
                        Ok::<_, arena::PlayerError>(())
                    })
                    .unwrap();
                luna.take_known(|_, leaf, evaluation| {
                    let &(legal, value) = leaves.next().unwrap();
                    assert_eq!(evaluation.priors, vec![1.0 / legal as f32; legal]);
                    assert_eq!(evaluation.value, value);
                    let seen = [0.0, 1.0, -0.5].iter().position(|&seen| seen == value.get());
                    found[seen.unwrap()] += 1;
                    search.apply(leaf, evaluation)
                })
                .unwrap();
            }
            let action = search.choose(1.0).unwrap();
            search.advance(action).unwrap();
        }
    }
    assert!(found.iter().all(|&count| count > 20), "{found:?}");
}

#[test]
fn a_perfect_player_never_loses_value_and_its_games_can_be_read_back() {
    let home = tempfile::tempdir().unwrap();
    let mut networks = common::networks();
    let pair = Match::<ConnectFour>::new(&["perfect", "uct,visits=50"], 10, 16, &mut networks);
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
