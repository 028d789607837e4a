//! How games of chess end, and what counts as the same position.

use std::collections::HashMap;

use games::{
    Game, Outcome, Player, Symmetry,
    chess::{Chess, Rules},
};
use proptest::prelude::*;

use crate::play::{choices, legal, play};

fn at(fen: &str) -> Chess {
    Chess::start(
        &Rules {
            underpromotions: true,
        },
        Some(fen),
    )
    .unwrap()
}

fn moves(state: &mut Chess, line: &str) {
    for uci in line.split_whitespace() {
        let action = state.action_of_uci(uci).unwrap();
        state.play(action).unwrap();
    }
}

/// The planes of repetition in the row.
fn repetition_planes(state: &Chess) -> [u32; 2] {
    let mut row = Vec::new();
    state.write_row((), Symmetry::IDENTITY, &mut row);
    [row[33], row[34]]
}

#[test]
fn material_that_cannot_mate_is_a_draw() {
    for (fen, is_dead) in [
        ("8/8/4k3/8/8/3K4/8/8 w - - 0 1", true),
        ("8/8/4k3/8/7n/3K4/8/8 w - - 0 1", true),
        ("8/8/4k3/8/7B/3K4/8/8 b - - 0 1", true),
        // All bishops on squares of one colour, whosever they are.
        ("8/8/4k3/2b5/7B/3K2B1/8/8 w - - 0 1", true),
        ("8/8/4k3/2b5/1B3B2/3K4/8/8 w - - 0 1", true),
        ("8/8/4k3/3b4/1B3B2/3K4/8/8 w - - 0 1", false),
        ("8/8/4k3/8/7n/3KB3/8/8 w - - 0 1", false),
        ("8/8/4kn2/8/7n/3K4/8/8 b - - 0 1", false),
        ("8/8/4k3/8/7N/3K3n/8/8 b - - 0 1", false),
        ("8/8/4k3/7p/8/3K4/8/8 b - - 0 1", false),
        ("8/8/4k3/7r/8/3K4/8/8 b - - 0 1", false),
        ("8/8/4k3/7q/8/3K4/8/8 w - - 0 1", false),
    ] {
        let expected = is_dead.then_some(Outcome::Draw);
        assert_eq!(at(fen).outcome(), expected, "{fen}");
        assert_eq!(legal(&at(fen)).is_empty(), is_dead, "{fen}");
    }
}

#[test]
fn fifty_moves_without_progress_are_a_draw_but_mate_comes_first() {
    let mut state = at("7k/8/8/8/8/8/R7/K7 w - - 98 80");
    moves(&mut state, "a2b2");
    assert_eq!(state.outcome(), None);
    moves(&mut state, "h8g8");
    assert_eq!(state.outcome(), Some(Outcome::Draw));
    assert_eq!(state.position(), "6k1/8/8/8/8/8/1R6/K7 w - - 100 81");
    assert_eq!(state.play(0).unwrap_err().reason, "the game is over");

    let mut state = at("7k/8/6K1/8/8/8/R7/8 w - - 99 80");
    moves(&mut state, "a2a8");
    assert_eq!(state.outcome(), Some(Outcome::Won(Player::First)));

    let mut state = at("7k/8/8/8/8/8/R6P/K7 w - - 99 80");
    moves(&mut state, "h2h3");
    assert_eq!((state.outcome(), state.clock()), (None, 0));
}

#[test]
fn a_start_position_may_have_passed_the_fiftieth_move() {
    let state = at("q6k/8/8/8/8/8/8/6K1 w - - 101 121");
    assert_eq!((state.clock(), state.outcome()), (101, Some(Outcome::Draw)));
    assert_eq!(state.position(), "q6k/8/8/8/8/8/8/6K1 w - - 101 121");
    let mut row = Vec::new();
    state.write_row((), Symmetry::IDENTITY, &mut row);
    assert_eq!(row.last(), Some(&101));
    assert_eq!(Chess::layout(()).validate(&row), Ok(()));
}

#[test]
fn stalemate_is_a_draw() {
    assert_eq!(
        at("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1").outcome(),
        Some(Outcome::Draw)
    );
}

#[test]
fn the_third_occurrence_is_a_draw() {
    let mut state = at("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    moves(&mut state, "g1f3 g8f6 f3g1 f6g8");
    assert_eq!(
        (state.earlier_occurrences(), repetition_planes(&state)),
        (1, [1, 0])
    );
    moves(&mut state, "g1f3 g8f6 f3g1");
    assert_eq!(state.outcome(), None);
    moves(&mut state, "f6g8");
    assert_eq!(
        (state.earlier_occurrences(), repetition_planes(&state)),
        (2, [1, 1])
    );
    assert_eq!(state.outcome(), Some(Outcome::Draw));
    assert!(legal(&state).is_empty());
}

/// A double step leaves the same position behind if no pawn can capture in passing; dlchess' planes do not know that.
#[test]
fn an_idle_en_passant_square_makes_no_other_position() {
    let shuffle = "g1f3 g8f6 f3g1 f6g8";
    let mut state = at("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    moves(&mut state, "e2e4 e7e5");
    moves(&mut state, shuffle);
    assert_eq!(
        (state.earlier_occurrences(), repetition_planes(&state)),
        (1, [0, 0])
    );
    moves(&mut state, shuffle);
    assert_eq!(
        (state.outcome(), repetition_planes(&state)),
        (Some(Outcome::Draw), [1, 0])
    );

    // Here the pawn can be captured, so the first position is another one.
    let mut state = at("rnbqkbnr/pppp1ppp/8/8/4p3/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    moves(&mut state, "d2d4 g8f6 g1f3 f6g8 f3g1");
    assert_eq!(state.earlier_occurrences(), 0);
    moves(&mut state, "g8f6 g1f3 f6g8 f3g1");
    assert_eq!((state.earlier_occurrences(), state.outcome()), (1, None));
}

/// A pinned pawn cannot capture in passing.
#[test]
fn a_pinned_pawn_makes_the_square_idle() {
    let mut state = at("4k3/8/8/8/r2pK2R/8/2P5/8 w - - 0 1");
    assert_eq!(state.action_of_uci("c2c4").map(|_| ()), Ok(()));
    moves(&mut state, "c2c4");
    // Black's pawn on d4 would open the rank; it stands between the white king and its own rook, so it may.
    assert!(state.action_of_uci("d4c3").is_ok());
    let mut state = at("8/8/8/8/k2p3R/8/2P5/4K3 w - - 0 1");
    moves(&mut state, "c2c4");
    assert!(
        state.action_of_uci("d4c3").is_err(),
        "both pawns would leave the rank"
    );
    moves(&mut state, "a4a3 h4h5 a3a4 h5h4");
    assert_eq!(
        (state.earlier_occurrences(), repetition_planes(&state)),
        (1, [0, 0])
    );
}

#[test]
fn lost_castling_rights_make_another_position() {
    let mut state = at("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
    moves(&mut state, "h1h2 h8h7 h2h1 h7h8");
    assert_eq!(state.earlier_occurrences(), 0);
    moves(&mut state, "h1h2 h8h7 h2h1 h7h8");
    assert_eq!(state.earlier_occurrences(), 1);
}

/// What FIDE calls the same position: the same player to move, pieces of the same kind on the same squares, and the
/// same possible moves of all pieces.
fn described(state: &Chess) -> String {
    let fen = state.position();
    let fields: Vec<&str> = fen.split(' ').collect();
    let mut actions = Vec::new();
    state.moves(&mut actions);
    let captures_in_passing = actions.iter().any(|&action| {
        let uci = state.uci(action);
        let from = uci.get(..2).unwrap().parse().unwrap();
        fields[3] == &uci[2..4] && state.board().piece_on(from) == Some(cozy_chess::Piece::Pawn)
    });
    let en_passant = if captures_in_passing { fields[3] } else { "-" };
    [fields[0], fields[1], fields[2], en_passant].join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Few pieces and long games, so that positions recur; the whole game is searched for each.
    #[test]
    fn occurrences_are_counted_over_the_whole_game(choices in choices(160), which in 0..3usize) {
        let mut state = at([
            "4k3/pp6/8/8/8/8/PP6/4K3 w - - 0 1",
            "4k2r/7p/8/8/8/8/P7/R3K3 w Qk - 0 1",
            "4k3/4p3/3p4/8/3P1P2/8/8/4K3 b - - 0 1",
        ][which]);
        let mut seen: HashMap<String, u32> = HashMap::new();
        let mut seen_raw: HashMap<String, u32> = HashMap::new();
        play(&mut state, &choices, |state, _| {
            let earlier = seen.entry(described(state)).or_default();
            assert_eq!(state.earlier_occurrences(), *earlier);
            *earlier += 1;
            let raw = state.position().rsplitn(3, ' ').last().unwrap().to_owned();
            let earlier = seen_raw.entry(raw).or_default();
            assert_eq!(repetition_planes(state), [1, 2].map(|times| u32::from(*earlier >= times)));
            *earlier += 1;
        });
    }
}
