//! Chess positions as FEN and moves in UCI notation: writing and reading.

use games::{
    Game, StartError,
    chess::{Chess, Rules, UciError},
};

use crate::shared::legal;

const KIWIPETE: &str = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";

pub fn at(fen: &str) -> Chess {
    Chess::start(&Rules::default(), Some(fen)).unwrap()
}

#[test]
fn castling_is_written_as_the_kings_move() {
    let state = at(KIWIPETE);
    let all: Vec<String> = legal(&state).iter().map(|&action| state.uci(action)).collect();
    assert!(all.contains(&"e1g1".into()) && all.contains(&"e1c1".into()));
    assert!(!all.contains(&"e1h1".into()) && !all.contains(&"e1a1".into()));
    for (uci, after) in [
        (
            "e1g1",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R4RK1 b kq - 1 1",
        ),
        (
            "e1c1",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/2KR3R b kq - 1 1",
        ),
    ] {
        let mut state = state.clone();
        let action = state.action_of_uci(uci).unwrap();
        state.play(action).unwrap();
        assert_eq!(state.position(), after);
    }
    assert!(matches!(state.action_of_uci("e1h1"), Err(UciError::Illegal(_))));
}

#[test]
fn an_opponents_under_promotion_can_be_followed() {
    let mut state = at("8/P6k/8/8/8/8/8/K7 w - - 0 1");
    assert_eq!(
        legal(&state)
            .iter()
            .filter(|&&action| state.uci(action).starts_with("a7"))
            .count(),
        1
    );
    let knight = state.action_of_uci("a7a8n").unwrap();
    state.play(knight).unwrap();
    assert_eq!(state.position(), "N7/7k/8/8/8/8/8/K7 b - - 0 1");
}

#[test]
fn malformed_and_illegal_moves_give_different_errors() {
    let state = at(KIWIPETE);
    for text in [
        "", "e2", "e2e", "e2e9", "i1a1", "e2e4k", "e2e4qq", "0000", "é2e4", "e2é4", "e2e4é",
    ] {
        assert!(
            matches!(state.action_of_uci(text), Err(UciError::Form(_))),
            "{text:?}"
        );
    }
    for text in ["e2e2", "e5e6", "a1b3", "d5e6q", "e1g1q", "e8g8", "a2a4q", "d5e6n"] {
        assert!(
            matches!(state.action_of_uci(text), Err(UciError::Illegal(_))),
            "{text:?}"
        );
    }
}

#[test]
fn fens_of_other_programs_are_read() {
    for (fen, position) in [
        ("8/P6k/8/8/8/8/8/K7 b - -", "8/P6k/8/8/8/8/8/K7 b - - 0 1"),
        ("8/P6k/8/8/8/8/8/K7 b - - 7", "8/P6k/8/8/8/8/8/K7 b - - 7 1"),
        ("8/P6k/8/8/8/8/8/K7 b - - 7 0", "8/P6k/8/8/8/8/8/K7 b - - 7 1"),
        (
            "\u{feff}8/P6k/8/8/8/8/8/K7 b - - 7 3",
            "8/P6k/8/8/8/8/8/K7 b - - 7 3",
        ),
        // Without a rook, without a king on its first rank, with one right of four.
        ("8/P6k/8/8/8/8/8/K7 w KQ - 0 1", "8/P6k/8/8/8/8/8/K7 w - - 0 1"),
        (
            "4k3/8/8/8/8/8/4K3/R6R w KQkq - 0 1",
            "4k3/8/8/8/8/8/4K3/R6R w - - 0 1",
        ),
        (
            "r3k3/8/8/8/8/8/8/4K2R w KQkq - 0 1",
            "r3k3/8/8/8/8/8/8/4K2R w Kq - 0 1",
        ),
        (
            "r3k3/8/8/8/8/8/8/4K2R w HAha - 0 1",
            "r3k3/8/8/8/8/8/8/4K2R w Kq - 0 1",
        ),
        // The corner's rook is the other side's.
        ("4k3/8/8/8/8/8/8/4K2r w K - 0 1", "4k3/8/8/8/8/8/8/4K2r w - - 0 1"),
    ] {
        match Chess::start(&Rules::default(), Some(fen)) {
            Ok(state) => assert_eq!(state.position(), position, "{fen}"),
            Err(error) => panic!("{fen}: {error}"),
        }
    }
}

#[test]
fn promotions_may_be_written_in_capitals() {
    let state = at("8/P6k/8/8/8/8/8/K7 w - - 0 1");
    for (capital, small) in [("a7a8Q", "a7a8q"), ("a7a8N", "a7a8n")] {
        assert_eq!(state.action_of_uci(capital), state.action_of_uci(small));
        assert!(state.action_of_uci(capital).is_ok(), "{capital}");
    }
}

#[test]
fn invalid_fens_are_refused() {
    for (fen, reason_part) in [
        ("", "six fields"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "not a position"),
        ("K7/8/8/8/8/8/8/8 w - - 0 1", "not a position"),
        ("kK6/8/8/8/8/8/8/8 w - - 0 1", "kings"),
        ("K6k/8/8 w - - 0 1", "eight ranks"),
        ("P6k/8/8/8/8/8/8/K7 w - - 0 1", "not a position"),
        ("8/P6k/8/8/8/8/8/K7 x - - 0 1", "neither w nor b"),
        ("4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "castling"),
        ("4k3/8/8/8/8/8/8/4K2R w Kx - 0 1", "castling"),
        ("1k6/8/8/8/8/8/8/RK5R w KQ - 0 1", "e-file"),
        ("2k5/8/8/8/8/8/8/1R2K2R w BH - 0 1", "corners"),
        ("8/P6k/8/8/8/8/8/K7 w - e6 0 1", "en-passant"),
        ("8/P6k/8/8/8/8/8/K7 w - - 151 1", "up to 150"),
        ("8/P6k/8/8/8/8/8/K7 w - - -1 1", "up to 150"),
        ("8/P6k/8/8/8/8/8/K7 w - - 0 x", "positive"),
        ("8/P6k/8/8/8/8/8/K7 w - - 0 1 2", "six fields"),
    ] {
        match Chess::start(&Rules::default(), Some(fen)) {
            Err(StartError { reason, .. }) => assert!(reason.contains(reason_part), "{fen}: {reason}"),
            Ok(state) => panic!("{fen} was taken as {}", state.position()),
        }
    }
}

#[test]
fn rules_are_read_by_name() {
    let rules: Rules = serde_json::from_str(r#"{"underpromotions": true}"#).unwrap();
    assert!(rules.underpromotions);
    assert!(serde_json::from_str::<Rules>(r#"{"under_promotions": true}"#).is_err());
}
