//! Complete games: their records, and that they depend only on the seed and the model.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use actor::check::{positions, rules};
use config::RunConfig;
use games::{
    Game as _, Outcome,
    connect_four::ConnectFour,
    go::{Go, Rules},
    paco_sako::PacoSako,
};
use proto::{
    decisions::Decision,
    v1::{Game, GameResult, VisitTotals},
};
use search::Reuse;
use test_support::{FakeStore, until};
use tokio_util::sync::CancellationToken;

use crate::{
    Place, Running,
    evaluator_server::{Fate, Server},
    give_identity, start, start_playing,
};

/// Returns the first `count` games that an actor plays, by their number.
pub async fn first_games(
    count: u64,
    server: &Arc<Server>,
    change: impl FnOnce(&mut RunConfig),
) -> (HashMap<u64, Game>, actor::metrics::Snapshot) {
    first_games_of::<ConnectFour>(count, server, change).await
}

/// Returns the first `count` games that an actor plays of a game, by their number.
async fn first_games_of<G: games::Game>(
    count: u64,
    server: &Arc<Server>,
    change: impl FnOnce(&mut RunConfig),
) -> (HashMap<u64, Game>, actor::metrics::Snapshot) {
    let store = FakeStore::good();
    let place = Place::new(server, &store).await;
    give_identity(place.folder.path());
    let mut config = place.config();
    change(&mut config);
    let actor: Running = start_playing::<G>(config);
    let metrics = Arc::clone(&actor.metrics);
    actor
        .until(|| {
            let games = store.by_number();
            (0..count).all(|number| games.contains_key(&number))
        })
        .await;
    actor.stop().await;
    let mut games = store.by_number();
    games.retain(|&number, _| number < count);
    (games, metrics.snapshot())
}

/// Returns a game without what depends on other games, on the order of replies and on the time.
fn essence(game: &Game) -> Game {
    let totals = game.totals.unwrap();
    Game {
        totals: Some(VisitTotals {
            visits: totals.visits,
            terminal_visits: totals.terminal_visits,
            gray_visits: totals.gray_visits,
            ..VisitTotals::default()
        }),
        finished_at_ms: 0,
        tree_bytes: 0,
        search_json: String::new(),
        ..game.clone()
    }
}

fn assert_same(one: &HashMap<u64, Game>, other: &HashMap<u64, Game>) {
    assert_eq!(one.len(), other.len());
    for (number, game) in one {
        assert_eq!(essence(game), essence(&other[number]), "game {number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_depend_only_on_the_seed_and_the_model() {
    let server = Server::good();
    let (alone, _) = first_games(24, &server, |config| {
        config.actor.games_per_thread = 1;
        config.actor.cache_mib = 0;
        config.actor.requests_in_flight = 1;
    })
    .await;
    let (crowded, counted) = first_games(24, &server, |config| {
        config.actor.threads = 3;
        config.actor.games_per_thread = 16;
        config.actor.rows_per_request = 5;
        config.actor.requests_in_flight = 4;
    })
    .await;
    assert_same(&alone, &crowded);
    assert!(counted.cache_hits > 0, "{counted:?}");
    assert!(counted.duplicates_in_flight > 0, "{counted:?}");
    let different: std::collections::HashSet<_> = alone.values().map(|game| game.actions.clone()).collect();
    assert!(different.len() > 12, "games are to differ from each other");

    let (other_seed, _) = first_games(3, &server, |config| config.run.seed = 6).await;
    assert_ne!(essence(&alone[&0]), essence(&other_seed[&0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_failures_of_the_server_change_no_game() {
    let (calm, _) = first_games(12, &Server::good(), |_| ()).await;
    let moody = Server::new(|nth| match nth % 40 {
        7 => Fate::Error(tonic::Code::Unavailable),
        13 => Fate::Error(tonic::Code::ResourceExhausted),
        19 => Fate::Malformed,
        31 => Fate::Break,
        _ => Fate::Evaluate,
    });
    let (disturbed, counted) = first_games(12, &moody, |_| ()).await;
    assert_same(&calm, &disturbed);
    assert!(moody.requests.load(Ordering::SeqCst) > 40);
    assert!(
        counted.malformed_replies > 0 && counted.request_retries > 0,
        "{counted:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_can_be_replayed_and_trained_on() {
    let server = Server::good();
    for reuse in [Reuse::Gray, Reuse::Drop] {
        let (games, counted) = first_games(10, &server, |config| config.search.reuse = reuse).await;
        for game in games.values() {
            check_record(game, reuse);
        }
        let answered = counted.fresh_evaluations
            + counted.cache_hits
            + counted.duplicates_in_flight
            + counted.gray_visits
            + counted.terminal_visits;
        assert!(answered >= counted.visits && answered <= counted.visits + counted.actions);
    }
    assert!(server.largest.load(Ordering::SeqCst) <= 8, "rows_per_request");
    assert!(server.models.lock().contains(&"latest".to_owned()));
}

fn check_record(game: &Game, reuse: Reuse) {
    assert_eq!(
        (game.game.as_str(), game.options, game.run_seed),
        ("connect-four", 1, 5)
    );
    assert_eq!(
        (game.id.len(), game.actor.as_str(), game.start.as_str()),
        (16, "test", "")
    );
    assert_eq!(game.rules_json, "{}");
    let search: search::Settings = serde_json::from_str(&game.search_json).unwrap();
    assert_eq!(search.visits, 24);
    assert_eq!(game.model_versions, ["first"]);

    let plies = game.actions.len();
    assert_eq!(game.model_of_position, vec![0; plies]);
    assert!(game.row_lengths.is_empty());
    assert_eq!(rules::check::<ConnectFour>(game).first(), None);
    let mut state = ConnectFour::start(&Default::default(), None).unwrap();
    for position in positions(game).unwrap() {
        assert!(position.visits.iter().all(|&visits| visits > 0));
        assert_eq!(position.visits.iter().sum::<u32>(), 24, "{reuse:?}");
        let searched = position.visit_actions;
        assert!(
            searched.contains(&position.action),
            "only what was visited is played"
        );
        assert!(position.root_value.abs() <= 1.0);
        let decision = position.decision.expect("searches are recorded");
        check_decision(&decision, &state, searched, position.action);
        state.play(position.action).unwrap();
    }
    let totals = game.totals.unwrap();
    assert_eq!(totals.visits, 24 * plies as u64);
    assert!(game.finished_at_ms > 1_600_000_000_000);
}

/// Checks that the named actions are the legal ones, that priors are a distribution, and that an action that ends the game has its
/// result for the mover.
fn check_decision(decision: &Decision<'_>, state: &ConnectFour, searched: &[u32], action: u32) {
    assert!(decision.is_searched());
    let named = [searched, decision.unvisited].concat();
    let (mut legal, mut sorted) = (Vec::new(), named.clone());
    state.legal_actions(&mut legal);
    sorted.sort_unstable();
    assert_eq!(sorted, legal);
    assert_eq!(named[decision.played.unwrap() as usize], action);
    let priors = decision
        .visited_priors
        .iter()
        .chain(decision.unvisited_priors.iter());
    assert!((priors.sum::<f32>() - 1.0).abs() < 0.01);
    assert!(decision.evaluation.abs() <= 1.0);
    for (&action, value) in searched.iter().zip(decision.values.iter()) {
        let mut next = *state;
        next.play(action).unwrap();
        match next.outcome() {
            Some(Outcome::Won(winner)) => {
                assert_eq!(value, if winner == state.to_move() { 1.0 } else { -1.0 })
            }
            Some(_) => assert_eq!(value, 0.0),
            None => assert!(value.abs() <= 1.0),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn games_end_as_draws_at_the_limit_of_actions() {
    let (games, counted) = first_games(6, &Server::good(), |config| config.search.max_actions = 3).await;
    for game in games.values() {
        assert_eq!(game.actions.len(), 3);
        assert_eq!(
            (game.result(), game.ending.as_str()),
            (GameResult::Draw, "max-actions")
        );
    }
    assert!(counted.games_cut >= 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_model_is_used_at_once_and_gets_no_cached_evaluations_of_the_old_one() {
    let server = Server::good();
    let store = FakeStore::good();
    let place = Place::new(&server, &store).await;
    let mut config = place.config();
    config.search.noise_fraction = 0.0;
    let actor = start(config);
    // Games begin alike, so many of their positions are soon in the cache.
    actor
        .until(|| actor.metrics.cache_hits.get() > 5_000 && store.count() > 30)
        .await;
    *server.version.lock() = "second".into();
    let fresh = actor.metrics.fresh_evaluations.get();
    actor
        .until(|| {
            let games = store.games.lock();
            games
                .values()
                .filter(|game| game.model_versions == ["second"])
                .count()
                > 30
        })
        .await;
    let asked_again = actor.metrics.fresh_evaluations.get() - fresh;
    actor.stop().await;
    assert!(asked_again > 100, "{asked_again}");
    for game in store.games.lock().values() {
        let newest: Vec<&str> = game
            .model_of_position
            .iter()
            .map(|&at| game.model_versions[at as usize].as_str())
            .collect();
        assert!(newest.is_sorted(), "{newest:?}");
        assert!(game.model_versions.len() <= 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_role_plays_paco_sako_by_the_rules() {
    let server = Server::good();
    *server.layout.lock() = PacoSako::layout(PacoSako::encoding(&Default::default(), 1).unwrap());
    let store = FakeStore::good();
    let place = Place::new(&server, &store).await;
    let mut config = place.config();
    config.game = Default::default();
    config.search.visits = 8;
    config.search.max_actions = 150;
    let shutdown = CancellationToken::new();
    let role = tokio::spawn(actor::run(config, shutdown.clone()));
    until(|| {
        assert!(!role.is_finished());
        store.count() >= 12
    })
    .await;
    shutdown.cancel();
    role.await.unwrap().unwrap();
    let games = store.games.lock();
    for game in games.values() {
        assert_eq!(rules::check::<PacoSako>(game).first(), None);
        assert!(game.ending == "max-actions" || game.actions.len() < 150);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_go_tell_the_owners_of_the_points() {
    let server = Server::good();
    let of_three = Rules {
        size: 3,
        ..Rules::default()
    };
    *server.layout.lock() = Go::layout(Go::encoding(&of_three, 0).unwrap());
    let (games, _) = first_games_of::<Go>(6, &server, |config| {
        config.game.name = "go".into();
        config.game.options = 0;
        config.game.rules.insert("size".into(), 3.into());
        config.search.max_actions = 30;
    })
    .await;
    let mut ended = 0;
    for game in games.values() {
        assert_eq!(rules::check::<Go>(game).first(), None);
        if game.ending == "max-actions" {
            assert_eq!((game.territory.len(), game.territory_score), (0, 0.0));
            continue;
        }
        ended += 1;
        assert_eq!(game.territory.len(), 9);
        let points: i32 = game
            .territory
            .iter()
            .map(|owner| i32::from(owner.cast_signed()))
            .sum();
        assert_eq!(game.territory_score, points as f32 - of_three.komi);
        assert_eq!(game.territory_score.signum(), game.score);
        let mut altered = game.clone();
        altered.territory_score += 1.0;
        let problems = rules::check::<Go>(&altered);
        assert_eq!(problems[0].field, "territory");
    }
    assert!(ended > 0);
}
