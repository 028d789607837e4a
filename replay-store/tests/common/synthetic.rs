//! Random games by the rules, with visits like those of a search: all that a store checks follows from their actions.
#![allow(dead_code, reason = "each test binary uses some of it")]

use games::{
    Action, Game as Rules, Outcome, Player, Symmetry, connect_four::ConnectFour, go::Go, paco_sako::PacoSako,
};
use proto::{
    decisions::{DecisionEntry, Recorder},
    endings,
    v1::{DecisionKind, Game, GameResult, VisitTotals},
};
use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;

/// Visits of each search.
const VISITS: f64 = 100.0;

/// Adds visits that are spread over the legal actions so that a few of them get most. Unvisited actions are left out.
fn visits(random: &mut ChaCha8Rng, legal: &[u32], game: &mut Game) {
    let weights: Vec<f64> = legal
        .iter()
        .map(|_| (-random.random::<f64>().ln()).powf(2.5))
        .collect();
    let sum: f64 = weights.iter().sum();
    let before = game.visits.len();
    for (&action, weight) in legal.iter().zip(weights) {
        let count = (weight / sum * VISITS).round() as u32;
        if count > 0 {
            game.visit_actions.push(action);
            game.visits.push(count);
        }
    }
    game.visit_counts.push((game.visits.len() - before) as u32);
}

/// Returns a game of random actions from `start` until it is over or has `most` actions, which is determined by `number`.
pub fn random<G: Rules>(rules: &G::Rules, options: u32, start: &str, number: u64, most: usize) -> Game {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    play::<G>(rules, options, start, number, most, &mut random)
}

fn play<G: Rules>(
    rules: &G::Rules,
    options: u32,
    start: &str,
    number: u64,
    most: usize,
    random: &mut ChaCha8Rng,
) -> Game {
    let encoding = G::encoding(rules, options).unwrap();
    let mut game = Game {
        game: G::NAME.into(),
        options,
        rules_json: serde_json::to_string(rules).unwrap(),
        start: start.into(),
        ..header(number, most)
    };
    let mut state = G::start(rules, (!start.is_empty()).then_some(start)).unwrap();
    let (mut legal, mut movers) = (Vec::<Action>::new(), Vec::new());
    while state.outcome().is_none() && movers.len() < most {
        state.legal_actions(&mut legal);
        let before = game.rows.len();
        state.write_row(encoding, Symmetry::IDENTITY, &mut game.rows);
        if G::layout(encoding).row_len().is_none() {
            game.row_lengths.push((game.rows.len() - before) as u32);
        }
        let index = |&action| state.policy_index(encoding, Symmetry::IDENTITY, action);
        let indices: Vec<u32> = legal.iter().map(index).collect();
        visits(random, &indices, &mut game);
        movers.push(state.to_move().index() as u8);
        let action = *legal.choose(random).unwrap();
        game.actions.push(action);
        state.play(action).unwrap();
    }
    let least = if G::PLAYERS == 1 { 0 } else { -10_000i32 };
    let positions = movers.len();
    game.movers = movers.into();
    game.root_values = (0..positions)
        .map(|_| random.random_range(least..10_000) as f32 / 10_007.0)
        .collect();
    game.model_of_position = (0..positions).map(|ply| u32::from(ply > positions / 2)).collect();
    finish(&mut game, &state);
    game
}

/// Writes the end of a game into its record, as it follows from the state after its actions.
pub fn finish<G: Rules>(game: &mut Game, state: &G) {
    let outcome = state.outcome().unwrap_or(match G::PLAYERS {
        1 => Outcome::Scored(0.0),
        _ => Outcome::Draw,
    });
    let result = match outcome {
        Outcome::Won(Player::First) => GameResult::FirstWon,
        Outcome::Won(Player::Second) => GameResult::SecondWon,
        Outcome::Draw => GameResult::Draw,
        Outcome::Scored(_) => GameResult::Scored,
    };
    (game.result, game.score) = (result.into(), outcome.value().get());
    game.ending = state.ending().unwrap_or(endings::MAX_ACTIONS).into();
    if let Some(territory) = state.territory() {
        game.territory = territory
            .owners
            .iter()
            .map(|owner| owner.cast_unsigned())
            .collect();
        game.territory_score = territory.score;
    }
}

/// Returns a game of Paco Ŝako that was cut off after `positions` positions, which is determined by `number`.
pub fn game(number: u64, positions: usize) -> Game {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    loop {
        let game = play::<PacoSako>(&Default::default(), 1, "", number, positions, &mut random);
        // Some random games are over earlier.
        if game.ending == endings::MAX_ACTIONS {
            return game;
        }
    }
}

/// Returns a game of Connect Four that was played to its end, which is determined by `number`.
pub fn connect_four(number: u64) -> Game {
    random::<ConnectFour>(&Default::default(), 1, "", number, 42)
}

/// Returns game `number` of Go with 3×3 points. The game is over, so the record has the owners of the points.
pub fn go(number: u64) -> Game {
    let rules = games::go::Rules {
        size: 3,
        ..Default::default()
    };
    Game {
        model_versions: Vec::new(),
        model_of_position: Vec::new(),
        ..random::<Go>(&rules, 0, "", number, 1_000)
    }
}

/// Adds search results to a game. Each position has up to three unvisited actions; every fifth has a known solution, and every
/// seventh has no recorded search.
pub fn with_decisions(mut game: Game) -> Game {
    let mut rng = ChaCha8Rng::seed_from_u64(game.game_number);
    let mut recorder = Recorder::default();
    let mut actions = game.visit_actions.as_slice();
    for (ply, &count) in game.visit_counts.iter().enumerate() {
        let (own, rest) = actions.split_at(count as usize);
        actions = rest;
        if ply % 7 == 6 || own.is_empty() {
            recorder.push_unrecorded(own.len());
            continue;
        }
        let others = (0..132).filter(|action| !own.contains(action));
        let others: Vec<u32> = others.take(rng.random_range(0..4)).collect();
        let prior = 1.0 / (own.len() + others.len()) as f32;
        let visited: Vec<(f32, f32)> = own.iter().map(|_| (prior, rng.random_range(-1.0..1.0))).collect();
        let unvisited: Vec<(u32, f32)> = others.into_iter().map(|action| (action, prior)).collect();
        recorder.push(&DecisionEntry {
            kind: match ply % 5 {
                4 => DecisionKind::Solved,
                _ => DecisionKind::Searched,
            },
            visited: &visited,
            unvisited: &unvisited,
            evaluation: rng.random_range(-1.0..1.0),
            played: rng.random_range(0..own.len()),
        });
    }
    game.decisions = Some(recorder.finish());
    game
}

/// Returns a record of no positions, of a run with at most `max_actions` actions in a game.
fn header(number: u64, max_actions: usize) -> Game {
    let mut id = [0; 16];
    ChaCha8Rng::seed_from_u64(number).fill(&mut id[..8]);
    id[8..].copy_from_slice(&number.to_be_bytes());
    Game {
        id: id.to_vec().into(),
        model_versions: vec!["000000000050-8c1f0e2d".into(), "000000000100-77aa01fe".into()],
        run_seed: 1,
        game_number: number,
        search_json: format!(
            r#"{{"visits":100,"exploration":1.25,"first_play":"parent","leaves":4,"noise_fraction":0.25,"noise_total_alpha":10.83,"random_symmetry":true,"reuse":"gray","discount":1.0,"temperature":[{{"until_action":40,"temperature":1.0}}],"max_actions":{max_actions}}}"#
        ),
        actor: "actor-0".into(),
        build: "0.1.0".into(),
        finished_at_ms: 1_790_000_000_000 + number,
        totals: Some(VisitTotals {
            visits: 100 * number,
            fresh_evaluations: 70 * number,
            cache_hits: 20 * number,
            terminal_visits: 10,
            ..VisitTotals::default()
        }),
        ..Game::default()
    }
}
