//! Measures the disk space of a position of Paco Ŝako: random games by the real rules, with a hundred visits spread over the legal
//! actions, in a window that has been replaced completely.

use crate::common::{open, settings, synthetic};
use games::{Action, Game as _, Symmetry, paco_sako::PacoSako};
use proto::{
    decisions::{DecisionEntry, Recorder},
    v1::{DecisionKind, Game},
};
use rand::{Rng as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use replay_store::{record, store::append::Verdict};

/// Maximum number of bytes on disk for each position of the window.
const LIMIT: f64 = 120.0;

/// Returns a random game under the rules of self-play, with the input rows of the network.
fn random_game(number: u64) -> Game {
    let mut random = ChaCha8Rng::seed_from_u64(number);
    let encoding = PacoSako::encoding(&Default::default(), 1).unwrap();
    let mut state = PacoSako::start(&Default::default(), None).unwrap();
    let mut game = synthetic::game(number, 1);
    game.actions.clear();
    game.rows.clear();
    game.visit_counts.clear();
    game.visit_actions.clear();
    game.visits.clear();
    game.root_values.clear();
    game.model_of_position.clear();
    let mut recorder = Recorder::default();
    let mut movers = Vec::new();
    let mut legal: Vec<Action> = Vec::new();
    let mut value = 0.0f32;
    while state.outcome().is_none() && movers.len() < 600 {
        state.legal_actions(&mut legal);
        state.write_row(encoding, Symmetry::IDENTITY, &mut game.rows);
        // Visits are skewed like those of a search.
        let weights: Vec<f64> = legal
            .iter()
            .map(|_| (-random.random::<f64>().ln()).powi(2))
            .collect();
        let sum: f64 = weights.iter().sum();
        value = (value + random.random_range(-0.1..0.1f32)).clamp(-1.0, 1.0);
        let (mut visited, mut unvisited) = (Vec::new(), Vec::new());
        for (&action, weight) in legal.iter().zip(&weights) {
            let visits = (weight / sum * 99.0).round() as u32;
            let index = state.policy_index(encoding, Symmetry::IDENTITY, action);
            let prior = (weight / sum) as f32;
            if visits > 0 || legal.len() == 1 {
                game.visit_actions.push(index);
                game.visits.push(visits.max(1));
                visited.push((
                    prior,
                    (value + random.random_range(-0.1..0.1f32)).clamp(-1.0, 1.0),
                ));
            } else {
                unvisited.push((index, prior));
            }
        }
        game.visit_counts.push(visited.len() as u32);
        recorder.push(&DecisionEntry {
            kind: DecisionKind::Searched,
            visited: &visited,
            unvisited: &unvisited,
            evaluation: (value + random.random_range(-0.1..0.1f32)).clamp(-1.0, 1.0),
            played: random.random_range(0..visited.len()),
        });
        game.root_values.push(value);
        movers.push(state.to_move().index() as u8);
        game.model_of_position.push((movers.len() > 100).into());
        let action = *legal.choose(&mut random).unwrap();
        game.actions.push(action);
        state.play(action).unwrap();
    }
    game.movers = movers.into();
    game.decisions = Some(recorder.finish());
    synthetic::finish(&mut game, &state);
    game
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_of_paco_sako_takes_at_most_120_bytes_on_disk() {
    const WINDOW: u64 = 300_000;
    let pool: Vec<Game> = (0..200).map(random_game).collect();
    let positions: usize = pool.iter().map(|game| game.actions.len()).sum();
    let entries: usize = pool.iter().map(|game| game.visits.len()).sum();
    let records: usize = pool
        .iter()
        .map(|game| record::encode(game.clone()).unwrap().len())
        .sum();
    for game in &pool {
        assert_eq!(
            &record::decode(&record::encode(game.clone()).unwrap()).unwrap(),
            game
        );
    }
    let each = |bytes: usize| bytes as f64 / positions as f64;
    println!(
        "{} games of {:.0} positions with {:.1} visited actions: {:.1} bytes a position packed, {:.1} as messages",
        pool.len(),
        positions as f64 / pool.len() as f64,
        entries as f64 / positions as f64,
        each(records),
        each(pool.iter().map(prost::Message::encoded_len).sum()),
    );

    let folder = tempfile::tempdir().unwrap();
    let settings = settings(folder.path(), WINDOW);
    let mut store = open(&settings);
    let mut number = 0u64;
    for turn in 1..=3 {
        while store.stats().positions_inserted < turn * WINDOW {
            let group: Vec<Game> = (0..40)
                .map(|_| {
                    let mut game = pool[number as usize % pool.len()].clone();
                    number += 1;
                    game.id = u128::from(number).to_be_bytes().to_vec().into();
                    game
                })
                .collect();
            for few in group.chunks(4) {
                for verdict in futures::future::join_all(few.iter().map(|game| store.put(game))).await {
                    assert_eq!(verdict.unwrap(), Verdict::Stored);
                }
            }
        }
        let report = |store: &replay_store::store::Store, when: &str| {
            let stats = store.stats();
            let each = |bytes: u64| bytes as f64 / stats.window_positions as f64;
            println!(
                "window filled {turn} times{when}: {:.1} bytes a position of records, {:.1} on disk",
                each(stats.stored_bytes),
                each(stats.disk_bytes)
            );
            assert!(each(stats.disk_bytes) <= LIMIT);
        };
        report(&store, "");
        tokio::task::block_in_place(|| store.close().unwrap());
        drop(store);
        store = open(&settings);
        report(&store, ", reopened");
    }
}
