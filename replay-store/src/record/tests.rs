//! Tests of records: a record gives back the same game, and damaged bytes give an error or a game but never a panic.

use proptest::prelude::*;
use proto::v1::{Decisions, VisitTotals};

use super::*;
use crate::synthetic;

/// Adds search results with other numbers in each column.
fn add_decisions(game: &mut Game) {
    let entries = game.visits.len();
    let unvisited_counts: Vec<u32> = game.actions.iter().map(|action| action % 4).collect();
    let unvisited: usize = unvisited_counts.iter().sum::<u32>() as usize;
    let bytes = |count: usize, from: usize| (0..2 * count).map(|at| (at * 37 + from) as u8).collect();
    game.decisions = Some(Decisions {
        kinds: game.actions.iter().map(|action| (action % 3) as u8).collect(),
        unvisited_counts,
        unvisited_actions: (0..unvisited).map(|at| at as u32 * 300).collect(),
        visited_priors: bytes(entries, 1),
        unvisited_priors: bytes(unvisited, 2),
        values: bytes(entries, 3),
        evaluations: bytes(game.actions.len(), 4),
        played: game.actions.clone(),
    });
}

fn any_game() -> impl Strategy<Value = Game> {
    let position = (
        0u8..2,
        any::<u32>(),
        prop::collection::vec(any::<u32>(), 1..6),
        prop::collection::vec((0u32..500, any::<u32>()), 0..5),
        -1.0f32..1.0,
    );
    let texts = prop::collection::vec(".{0,12}", 6);
    let numbers = (
        any::<[u8; 16]>(),
        any::<u32>(),
        any::<[u64; 3]>(),
        any::<Option<[u64; 6]>>(),
        1i32..5,
    );
    (
        prop::collection::vec(position, 1..12),
        texts,
        numbers,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(
                positions,
                texts,
                (id, options, numbers, totals, result),
                fixed,
                with_models,
                with_decisions,
            )| {
                let mut game = Game {
                    id: id.to_vec().into(),
                    game: texts[0].clone(),
                    options,
                    rules_json: texts[1].clone(),
                    start: texts[2].clone(),
                    ending: texts[3].clone(),
                    search_json: texts[4].clone(),
                    actor: texts[5].clone(),
                    build: texts[0].clone(),
                    result,
                    score: -0.25,
                    territory: texts[1].clone().into(),
                    territory_score: options as f32,
                    run_seed: numbers[0],
                    game_number: numbers[1],
                    finished_at_ms: numbers[2],
                    totals: totals.map(|totals| VisitTotals {
                        visits: totals[0],
                        fresh_evaluations: totals[1],
                        cache_hits: totals[2],
                        terminal_visits: totals[3],
                        duplicates_in_flight: totals[4],
                        gray_visits: totals[5],
                    }),
                    ..Game::default()
                };
                if with_models {
                    game.model_versions = texts.clone();
                }
                let mut movers = Vec::new();
                for (mover, action, row, visits, value) in positions {
                    movers.push(mover);
                    game.actions.push(action);
                    let length = if fixed { 1 } else { row.len() };
                    game.rows.extend(&row[..length]);
                    if !fixed {
                        game.row_lengths.push(length as u32);
                    }
                    game.visit_counts.push(visits.len() as u32);
                    for (action, visits) in visits {
                        game.visit_actions.push(action);
                        game.visits.push(visits);
                    }
                    game.root_values.push(value);
                    if with_models {
                        game.model_of_position.push(action % 6);
                    }
                }
                game.movers = movers.into();
                if with_decisions {
                    add_decisions(&mut game);
                }
                game
            },
        )
}

proptest! {
    #[test]
    fn any_game_comes_back(game in any_game()) {
        let record = encode(game.clone()).unwrap();
        let summary = summary(&record).unwrap();
        prop_assert_eq!(summary.positions as usize, game.actions.len());
        prop_assert_eq!(
            summary.trainable as usize,
            game.visit_counts.iter().filter(|&&count| count > 0).count()
        );
        prop_assert_eq!(&summary.id[..], &game.id[..]);
        prop_assert_eq!(decode(&record).unwrap(), game);
    }

    #[test]
    fn damage_never_panics(
        number in 0u64..4,
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut record = encode(synthetic::with_decisions(synthetic::game(number, 40))).unwrap();
        for (at, flip) in flips {
            let at = at.index(record.len());
            record[at] ^= flip;
        }
        let _ = summary(&record);
        let _ = decode(&record);
        record.truncate(cut.index(record.len()));
        prop_assert!(decode(&record).is_err());
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut record = vec![VERSION];
        record.extend(bytes);
        let _ = decode(&record);
    }
}

#[test]
fn another_version_is_named() {
    let mut record = encode(synthetic::game(1, 3)).unwrap();
    record[0] = 9;
    assert_eq!(decode(&record), Err(DecodeError::Version(9)));
}
