//! Algebraic notation, compared with that of python-chess.

use std::collections::BTreeMap;

use games::chess::SanError;
use serde::Deserialize;

use super::chess_notation::at;
use crate::shared::records;

#[derive(Deserialize)]
struct Record {
    fen: String,
    /// All legal moves: UCI notation and algebraic notation.
    moves: BTreeMap<String, String>,
}

#[test]
fn notation_of_every_legal_move_agrees_with_python_chess() {
    let mut moves = 0;
    for record in records::<Record>("chess/san.jsonl.gz") {
        let state = at(&record.fen);
        let mut legal = Vec::new();
        state.moves(&mut legal);
        assert_eq!(legal.len(), record.moves.len(), "{}", record.fen);
        for action in legal {
            let expected = &record.moves[&state.uci(action)];
            assert_eq!(&state.san(action), expected, "{}", record.fen);
            assert_eq!(state.action_of_san(expected), Ok(action), "{}", record.fen);
            moves += 1;
        }
    }
    assert!(moves > 5000, "{moves}");
}

#[test]
fn abbreviated_and_long_notation_is_read() {
    let state = at("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1");
    for (text, uci) in [
        ("0-0", "e1g1"),
        ("o-o-o", "e1c1"),
        ("de6", "d5e6"),
        ("dxe6!", "d5e6"),
        ("Ba6", "e2a6"),
        ("Be2xa6", "e2a6"),
        ("Nc3-b5", "c3b5"),
        (" gh3 ", "g2h3"),
    ] {
        assert_eq!(
            state.action_of_san(text).map(|action| state.uci(action)),
            Ok(uci.into()),
            "{text}"
        );
    }
    let promotion = at("1n5k/P7/8/8/8/8/8/K7 w - - 0 1");
    for (text, uci) in [
        ("a8", "a7a8q"),
        ("a8Q", "a7a8q"),
        ("a8=N", "a7a8n"),
        ("ab8r", "a7b8r"),
        ("axb8b", "a7b8b"),
    ] {
        assert_eq!(
            promotion.action_of_san(text).map(|action| promotion.uci(action)),
            Ok(uci.into()),
            "{text}"
        );
    }
}

#[test]
fn ambiguous_malformed_and_illegal_moves_are_refused() {
    let state = at("k7/8/8/8/8/2N5/8/K1N1N3 w - - 0 1");
    match state.action_of_san("Ne2") {
        Err(SanError::Ambiguous { candidates, .. }) => assert_eq!(candidates, ["N1e2", "N3e2"]),
        other => panic!("{other:?}"),
    }
    for text in [
        "", "e", "Ne", "N", "Nce2e4", "hello", "é4", "Ke2=Q", "=Q", "O-O-", "9", "xx", "Px",
    ] {
        assert!(
            matches!(state.action_of_san(text), Err(SanError::Form(_))),
            "{text:?}"
        );
    }
    for text in ["e4", "O-O", "Qd4"] {
        assert!(
            matches!(state.action_of_san(text), Err(SanError::Illegal(_))),
            "{text:?}"
        );
    }
}
