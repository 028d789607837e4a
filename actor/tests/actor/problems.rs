//! A game that is about problems: drawn by level, recorded with their provenance, and replayable from the record alone.

use std::sync::Arc;

use games::{
    Game as _, Outcome,
    generator::{ClanPosition, Encoding, GeneratorGame, Rules},
};
use proto::v1::{Game, GameResult};
use test_support::FakeStore;

use crate::{Place, evaluator_server::Server, start_playing};

/// Replays the record by the rules and returns its outcome.
fn replay(game: &Game) -> f32 {
    let rules: Rules = serde_json::from_str(&game.rules_json).unwrap();
    let mut state = GeneratorGame::start(&rules, Some(&game.start)).unwrap();
    let mut rows = game.rows.as_slice();
    let (mut visit_actions, mut visits) = (game.visit_actions.as_slice(), game.visits.as_slice());
    for (ply, &action) in game.actions.iter().enumerate() {
        let (row, others) = rows.split_at(game.row_lengths[ply] as usize);
        rows = others;
        let position = ClanPosition::read(row).unwrap();
        assert_eq!(position.clan, *state.clan());
        assert_eq!(position.problem, *state.problem());
        assert_eq!(position.examples, *state.examples());
        assert_eq!(position.step_marked, state.step_marked());
        let count = game.visit_counts[ply] as usize;
        let mut legal = Vec::new();
        state.legal_actions(&mut legal);
        assert!(count > 0 && visit_actions[..count].iter().all(|action| legal.contains(action)));
        if !game.provenance.is_empty() {
            let left = (game.actions.len() - ply) as i32;
            assert_eq!(
                (&visit_actions[..count], &visits[..count]),
                (&[action][..], &[1][..])
            );
            assert!((game.root_values[ply] - game.discount.powi(left)).abs() < 1e-6);
        }
        (visit_actions, visits) = (&visit_actions[count..], &visits[count..]);
        state.play(action).unwrap();
    }
    assert!(rows.is_empty());
    assert_eq!(state.ending(), Some(game.ending.as_str()));
    match state.outcome() {
        Some(Outcome::Scored(value)) => value,
        other => panic!("{other:?}"),
    }
}

/// Checks that a search is recorded with the values of its actions, and that after a known solution the value is that
/// of the root.
fn check_decisions(game: &Game) {
    assert_eq!(game.decisions.is_some(), game.provenance.is_empty());
    let Some(decisions) = game.decision_columns().unwrap() else {
        return;
    };
    for (ply, decision) in decisions
        .enumerate()
        .filter(|(_, decision)| decision.is_recorded())
    {
        let values: Vec<f32> = decision.values.iter().collect();
        assert!(values.iter().all(|value| value.abs() <= 1.0), "{values:?}");
        if !decision.is_searched() {
            assert_eq!(values.len(), 1);
            assert!((values[0] - game.root_values[ply]).abs() < 1e-3);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_are_played_known_solutions_and_hindsight_recorded() {
    let (server, store) = (Server::good(), FakeStore::good());
    *server.layout.lock() = GeneratorGame::layout(Encoding::Examples);
    let place = Place::new(&server, &store).await;
    let mut config = place.config();
    config.game.name = GeneratorGame::NAME.into();
    config.search.visits = 8;
    config.search.discount = 0.9;
    config.search.stop_when_solved = true;
    config.search.max_share = 0.25;
    config.problems.window = 4;
    config.problems.known_solutions = 0.4;
    config.game.rules.insert("move_limit".into(), 12.into());
    config.game.options = 1;
    config.game.rules.insert("pairs".into(), 25.into());
    config.game.rules.insert("tasks".into(), 25.into());
    let actor = start_playing::<GeneratorGame>(config);
    let of = |provenance: &str| -> Vec<Game> {
        let games = store.by_number();
        let found = games.into_values().filter(|game| game.provenance == provenance);
        found.collect()
    };
    // Played games and known solutions are of all kinds: one grid to draw, a pair of grids, a pair with examples. In hindsight a task is a
    // pair.
    let has_kinds = |provenance: &str| {
        let games = of(provenance);
        let with = |field: &str| games.iter().filter(|game| game.start.contains(field)).count();
        let (pairs, tasks) = (with("second_target"), with("examples"));
        let has_tasks = (tasks > 0) != (provenance == "hindsight");
        pairs > tasks && games.len() > pairs && has_tasks
    };
    let has_all = || ["", "known-solution", "hindsight"].into_iter().all(has_kinds);
    actor
        .until(|| {
            let enough = of("").len() >= 20 && of("known-solution").len() >= 10 && of("hindsight").len() >= 5;
            enough && has_all()
        })
        .await;
    let metrics = Arc::clone(&actor.metrics);
    actor.stop().await;
    let snapshot = metrics.snapshot();
    assert!(
        snapshot.problems_played >= 20 && snapshot.games_recorded >= 15,
        "{snapshot:?}"
    );
    for provenance in ["", "known-solution", "hindsight"] {
        for game in of(provenance) {
            assert_eq!(replay(&game), game.score, "{provenance}");
            assert_eq!(game.result(), GameResult::Scored);
            assert_eq!(game.discount, 0.9);
            check_decisions(&game);
            assert!(provenance.is_empty() || game.score == 1.0);
            assert_eq!(provenance.is_empty(), !game.model_versions.is_empty());
        }
    }
}
