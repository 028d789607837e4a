//! Synthetic games, which to a store look like those of Paco Ŝako: rows of 38 values seen from the side of the player to act, a lift and
//! a place in each turn, about nine legal actions, and a hundred visits spread over them.
#![allow(dead_code, reason = "each test binary uses some of it")]

use proto::{
    decisions::{DecisionEntry, Recorder},
    v1::{DecisionKind, Game, GameResult, VisitTotals},
};
use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

const KINDS: [u32; 16] = [1, 2, 3, 4, 5, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/// The sixteen pieces of one player: kind, and square as White numbers squares.
type Army = [(u32, u32); 16];

fn start() -> [Army; 2] {
    let army = |base: u32, step: i32| {
        std::array::from_fn(|at| {
            let file = at as u32 % 8;
            let rank = if at < 8 {
                base
            } else {
                base.wrapping_add_signed(step)
            };
            (KINDS[at], rank * 8 + file)
        })
    };
    [army(0, 1), army(7, -1)]
}

fn row(armies: &[Army; 2], mover: usize, lifted: Option<usize>, counter: u32, rows: &mut Vec<u32>) {
    let seen = |square: u32| if mover == 0 { square } else { square ^ 56 };
    let begin = rows.len();
    for (owner, army) in armies.iter().enumerate() {
        let mut pieces: Vec<usize> = (0..16)
            .filter(|&at| !(owner == mover && lifted == Some(at)))
            .collect();
        pieces.sort_by_key(|&at| army[at].1);
        for at in pieces {
            let (kind, square) = army[at];
            rows.push(seen(square) + 64 * (kind + if owner == mover { 0 } else { 6 }));
        }
    }
    if let Some(at) = lifted {
        let (kind, square) = armies[mover][at];
        rows.push(seen(square) + 64 * (kind + 12));
    }
    rows.push(rows[begin]);
    rows.extend([1, 1, 1, 1, counter]);
}

/// Splits `total` visits over some actions, so that a few of them get most. Unvisited actions are left out.
fn visits(rng: &mut ChaCha8Rng, legal: &[u32], total: u32, game: &mut Game) -> u32 {
    let weights: Vec<f64> = legal
        .iter()
        .map(|_| (-rng.random::<f64>().ln()).powf(2.5))
        .collect();
    let sum: f64 = weights.iter().sum();
    let mut kept = 0;
    let mut best = (0, legal[0]);
    for (&action, weight) in legal.iter().zip(weights) {
        let count = (weight / sum * f64::from(total)).round() as u32;
        if count > 0 {
            game.visit_actions.push(action);
            game.visits.push(count);
            kept += 1;
            best = best.max((count, action));
        }
    }
    if kept == 0 {
        game.visit_actions.push(legal[0]);
        game.visits.push(total.max(1));
        kept = 1;
    }
    game.visit_counts.push(kept);
    best.1
}

/// Returns a game of `positions` positions, which is determined by `number`.
pub fn game(number: u64, positions: usize) -> Game {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    let mut game = header(number, &mut rng);
    let mut armies = start();
    let mut movers = Vec::with_capacity(positions);
    let mut mover = 0;
    let mut counter = 1;
    while movers.len() < positions {
        let others: Vec<u32> = armies.iter().flatten().map(|piece| piece.1).collect();
        let mobile: Vec<usize> = (0..16).filter(|_| rng.random_bool(0.8)).collect();
        let seen = |square: u32| if mover == 0 { square } else { square ^ 56 };

        let mut legal: Vec<u32> = mobile.iter().map(|&at| seen(armies[mover][at].1)).collect();
        legal.push(seen(armies[mover][0].1));
        legal.sort_unstable();
        legal.dedup();
        row(&armies, mover, None, counter, &mut game.rows);
        let lifted = visits(&mut rng, &legal, 100, &mut game);
        game.actions.push(1 + seen(lifted));
        movers.push(mover as u8);
        let at = (0..16)
            .find(|&at| seen(armies[mover][at].1) == lifted)
            .unwrap_or(0);

        if movers.len() < positions {
            let free: Vec<u32> = (0..64).filter(|square| !others.contains(square)).collect();
            let mut legal: Vec<u32> = (0..rng.random_range(1..9))
                .filter_map(|_| free.choose(&mut rng).map(|&square| 64 + seen(square)))
                .collect();
            legal.sort_unstable();
            legal.dedup();
            row(&armies, mover, Some(at), counter, &mut game.rows);
            let placed = visits(&mut rng, &legal, 100, &mut game);
            game.actions.push(1 + 64 + seen(placed - 64));
            movers.push(mover as u8);
            armies[mover][at].1 = seen(placed - 64);
        }
        mover = 1 - mover;
        counter = (counter + 1) % 100;
    }
    game.movers = movers.into();
    game.root_values = (0..positions)
        .map(|_| rng.random_range(-10_000i32..10_000) as f32 / 10_007.0)
        .collect();
    game.model_of_position = (0..positions).map(|ply| u32::from(ply > positions / 2)).collect();
    game
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

fn header(number: u64, rng: &mut ChaCha8Rng) -> Game {
    let mut id = [0; 16];
    rng.fill(&mut id[..8]);
    id[8..].copy_from_slice(&number.to_be_bytes());
    let (result, score) = *[
        (GameResult::FirstWon, 1.0),
        (GameResult::SecondWon, -1.0),
        (GameResult::Draw, 0.0),
    ]
    .choose(rng)
    .unwrap_or(&(GameResult::Draw, 0.0));
    Game {
        id: id.to_vec().into(),
        game: "paco-sako".into(),
        options: 1,
        rules_json: r#"{"dead_end":"loss","turn_cycles":"forbid"}"#.into(),
        result: result.into(),
        score,
        ending: "paco".into(),
        model_versions: vec!["000000000050-8c1f0e2d".into(), "000000000100-77aa01fe".into()],
        run_seed: 1,
        game_number: number,
        search_json: r#"{"visits":100,"exploration":1.25,"first_play":"parent","leaves":4,"noise_fraction":0.25,"noise_total_alpha":10.83,"random_symmetry":true,"reuse":"gray","discount":1.0,"temperature":[{"until_action":40,"temperature":1.0}],"max_actions":600}"#.into(),
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
