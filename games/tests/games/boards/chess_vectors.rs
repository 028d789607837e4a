//! Positions encoded by dlchess: planes, and policy entries of all legal moves.

use std::collections::BTreeMap;

use games::{
    Game, Outcome, Player, Symmetry,
    chess::{Chess, Rules},
};
use serde::Deserialize;

use crate::shared::records;

#[derive(Deserialize)]
struct Record {
    id: u32,
    start_fen: String,
    moves: Vec<String>,
    fen: String,
    side: char,
    fifty: u8,
    winner: Option<u8>,
    planes_v2: Vec<Plane>,
    moves_v2: BTreeMap<String, [u32; 4]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Plane {
    Fill(f32),
    Ones(Vec<usize>),
}

const RECORDS: &str = "chess/dlchess_encoding.jsonl.gz";

/// Replays a record: its position with the history.
fn replay(record: &Record) -> Chess {
    let mut state = Chess::start(&Rules::default(), Some(&record.start_fen)).unwrap();
    for uci in &record.moves {
        let action = state.action_of_uci(uci).unwrap();
        state.play(action).unwrap();
    }
    state
}

#[test]
fn planes_agree_with_dlchess() {
    let layout = Chess::layout(Default::default());
    layout.check().unwrap();
    let mut tensor = vec![0.0; layout.stack().unwrap().tensor_len()];
    for record in records::<Record>(RECORDS) {
        let state = replay(&record);
        assert_eq!(state.position(), record.fen, "record {}", record.id);
        let mut row = Vec::new();
        state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
        layout.stack().unwrap().expand(&row, &mut tensor).unwrap();
        assert_eq!(record.planes_v2.len(), 22);
        for (number, (plane, found)) in record.planes_v2.iter().zip(tensor.chunks(64)).enumerate() {
            let expected = match plane {
                Plane::Fill(value) => [*value; 64],
                Plane::Ones(squares) => std::array::from_fn(|square| f32::from(squares.contains(&square))),
            };
            assert_eq!(found, expected, "record {}, plane {number}", record.id);
        }
    }
}

#[test]
fn policy_entries_of_legal_moves_agree_with_dlchess() {
    let mut count = 0;
    let mut actions = Vec::new();
    for record in records::<Record>(RECORDS) {
        let state = replay(&record);
        state.moves(&mut actions);
        assert!(actions.is_sorted());
        let numbers: BTreeMap<String, u32> = actions
            .iter()
            .map(|&action| {
                (
                    state.uci(action),
                    state.policy_index(Default::default(), Symmetry::IDENTITY, action),
                )
            })
            .collect();
        assert_eq!(numbers.len(), actions.len());
        let expected = record
            .moves_v2
            .iter()
            .map(|(uci, number)| (uci.clone(), number[3]))
            .collect();
        assert_eq!(numbers, expected, "record {}", record.id);
        for (&action, number) in actions
            .iter()
            .zip(actions.iter().map(|&action| state.uci(action)))
        {
            assert_eq!(state.action_of_uci(&number), Ok(action));
        }
        count += actions.len();
    }
    assert_eq!(count, 4984);
}

/// Two records are exceptions, where FIDE's rules and dlchess' differ.
#[test]
fn results_agree_with_dlchess() {
    for record in records::<Record>(RECORDS) {
        let state = replay(&record);
        assert_eq!(state.clock(), record.fifty);
        assert_eq!(state.to_move() == Player::First, record.side == 'w');
        let expected = match (record.id, record.winner) {
            // dlchess: a draw. FIDE: a knight against a bishop can mate with the opponent's help.
            (307, _) => None,
            // FIDE: a draw after a hundred half-moves. dlchess: after one more.
            (312, _) => Some(Outcome::Draw),
            (_, winner) => winner.map(|winner| match winner {
                0 => Outcome::Won(Player::First),
                1 => Outcome::Won(Player::Second),
                _ => Outcome::Draw,
            }),
        };
        assert_eq!(state.outcome(), expected, "record {}", record.id);
    }
}
