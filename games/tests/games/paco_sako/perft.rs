//! Perft counts, legal actions, and statistics of one whole turn, from 149 positions.

use std::collections::BTreeSet;

use games::perft::{perft, perft_played};
use serde::Deserialize;

use super::{
    data::{legal, records, start},
    turns::Turn,
};
use crate::shared::fnv1a64;

#[derive(Deserialize)]
struct Record {
    fen: String,
    legal: Vec<u32>,
    perft_actions: Vec<u64>,
    turn: Option<TurnStatistics>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct TurnStatistics {
    distinct_end_states: usize,
    intermediate_states: usize,
    dead_end_states: usize,
    paco_end_states: usize,
    end_states_fnv1a64: String,
}

#[test]
fn perft_agrees_at_every_recorded_depth() {
    let records: Vec<Record> = records("perft.jsonl");
    assert_eq!(records.len(), 149);
    for record in &records {
        let state = start(Some(&record.fen), 3);
        assert_eq!(legal(&state), record.legal, "{}", record.fen);
        assert_eq!(
            perft(&state, record.perft_actions.len()),
            record.perft_actions,
            "{}",
            record.fen
        );
    }
}

#[test]
fn perft_and_perft_played_agree() {
    for record in records::<Record>("perft.jsonl").iter().take(20) {
        let state = start(Some(&record.fen), 3);
        assert_eq!(perft_played(&state, 5), perft(&state, 5), "{}", record.fen);
    }
}

#[test]
fn statistics_of_whole_turns_agree() {
    for record in records::<Record>("perft.jsonl") {
        let Some(expected) = record.turn else { continue };
        let turn = Turn::explore(&start(Some(&record.fen), 3), 50_000).unwrap();
        let keys: BTreeSet<&str> = turn.ends.iter().map(|end| end.key.as_str()).collect();
        let bytes = keys.iter().flat_map(|key| key.bytes().chain([b'\n']));
        let found = TurnStatistics {
            distinct_end_states: turn.ends.len(),
            intermediate_states: turn.intermediate,
            dead_end_states: turn.dead_ends,
            paco_end_states: turn.ends.iter().filter(|end| end.is_paco).count(),
            end_states_fnv1a64: format!("{:016x}", fnv1a64(bytes)),
        };
        assert_eq!(found, expected, "{}", record.fen);
    }
}
