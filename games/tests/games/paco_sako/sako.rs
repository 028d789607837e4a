//! Threatened squares and ŝako for both colours, compared with records and with an exhaustive search of the turn.

use std::collections::BTreeMap;

use games::Player;
use serde::Deserialize;

use super::{
    data::{records, start},
    turns::Turn,
};

/// Most states of a turn for which the data have an exhaustive count.
const LIMIT: usize = 20_000;

#[derive(Deserialize)]
struct Record {
    fen: String,
    info: Colours,
}

#[derive(Deserialize)]
struct Colours {
    white: Attack,
    black: Attack,
}

#[derive(Deserialize)]
struct Attack {
    is_sako: bool,
    threats_hex: String,
    paco_sequences: usize,
    sequence_length_histogram: BTreeMap<usize, usize>,
    exhaustive_distinct_paco_end_states: Option<usize>,
}

fn attacks() -> Vec<(String, Player, Attack)> {
    let records: Vec<Record> = records("sako.jsonl");
    assert_eq!(records.len(), 188);
    records
        .into_iter()
        .flat_map(|Record { fen, info }| {
            [
                (fen.clone(), Player::First, info.white),
                (fen, Player::Second, info.black),
            ]
        })
        .collect()
}

#[test]
fn threatened_squares_and_sako_agree() {
    for (fen, attacker, attack) in attacks() {
        let state = start(Some(&fen), 3);
        let threats = format!("{:016x}", state.threatened(attacker));
        assert_eq!(threats, attack.threats_hex, "{attacker:?} in {fen}");
        assert_eq!(state.is_sako(attacker), attack.is_sako, "{attacker:?} in {fen}");
    }
}

/// Compares the ends of the turn in which the attacker unites with the king, by the length of a shortest sequence.
#[test]
fn an_exhaustive_search_of_the_turn_finds_the_recorded_victories() {
    let mut searched = 0;
    for (fen, attacker, attack) in attacks() {
        let Some(count) = attack.exhaustive_distinct_paco_end_states else {
            continue;
        };
        let turn = Turn::explore(&start(Some(&with_side(&fen, attacker)), 0), LIMIT).unwrap();
        let mut lengths = BTreeMap::new();
        for end in turn.ends.iter().filter(|end| end.is_paco) {
            *lengths.entry(end.distance).or_default() += 1;
        }
        assert_eq!(lengths.values().sum::<usize>(), count, "{attacker:?} in {fen}");
        assert_eq!(count, attack.paco_sequences, "{attacker:?} in {fen}");
        assert_eq!(count > 0, attack.is_sako, "{attacker:?} in {fen}");
        assert_eq!(lengths, attack.sequence_length_histogram, "{attacker:?} in {fen}");
        searched += 1;
    }
    assert!(searched > 300, "{searched}");
}

fn with_side(fen: &str, player: Player) -> String {
    let mut fields: Vec<&str> = fen.split(' ').collect();
    fields[1] = if player == Player::First { "w" } else { "b" };
    fields.join(" ")
}
