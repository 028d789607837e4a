//! Endings of chess games, and repetitions of positions.

use std::collections::HashMap;

use games::{
    Game, KnownOutcome, Outcome, Player, Symmetry,
    chess::{Chess, Rules},
};
use proptest::prelude::*;

use crate::shared::{choices, legal, play, wins_at_once};

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

/// Returns the values of the two repetition planes in the row.
fn repetition_planes(state: &Chess) -> [u32; 2] {
    let mut row = Vec::new();
    state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
    [row[33], row[34]]
}

#[test]
fn material_that_cannot_mate_is_a_draw() {
    for (fen, is_dead) in [
        ("8/8/4k3/8/8/3K4/8/8 w - - 0 1", true),
        ("8/8/4k3/8/7n/3K4/8/8 w - - 0 1", true),
        ("8/8/4k3/8/7B/3K4/8/8 b - - 0 1", true),
        // All bishops are on squares of one colour.
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
    state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
    assert_eq!(row.last(), Some(&101));
    assert_eq!(Chess::layout(Default::default()).validate(&row), Ok(()));
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

/// By FIDE's rules an en-passant square matters only if a pawn can capture on it. dlchess' planes ignore that rule.
#[test]
fn an_en_passant_square_without_capture_does_not_distinguish_positions() {
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

    // The pawn can be captured here, so the first position differs from the later ones.
    let mut state = at("rnbqkbnr/pppp1ppp/8/8/4p3/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    moves(&mut state, "d2d4 g8f6 g1f3 f6g8 f3g1");
    assert_eq!(state.earlier_occurrences(), 0);
    moves(&mut state, "g8f6 g1f3 f6g8 f3g1");
    assert_eq!((state.earlier_occurrences(), state.outcome()), (1, None));
}

/// A pinned pawn cannot capture en passant.
#[test]
fn an_en_passant_square_that_only_a_pinned_pawn_attacks_is_ignored() {
    let mut state = at("4k3/8/8/8/r2pK2R/8/2P5/8 w - - 0 1");
    assert_eq!(state.action_of_uci("c2c4").map(|_| ()), Ok(()));
    moves(&mut state, "c2c4");
    // The capture by the pawn on d4 opens the rank between Black's own rook and the white king, which is legal.
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

/// Returns a description that is equal for positions which FIDE calls the same: equal player to move, equal pieces on
/// equal squares, and equal possible moves of all pieces.
fn fide_key(state: &Chess) -> String {
    let fen = state.position();
    let fields: Vec<&str> = fen.split(' ').collect();
    let mut actions = Vec::new();
    state.moves(&mut actions);
    let captures_en_passant = actions.iter().any(|&action| {
        let uci = state.uci(action);
        let from = uci.get(..2).unwrap().parse().unwrap();
        fields[3] == &uci[2..4] && state.board().piece_on(from) == Some(cozy_chess::Piece::Pawn)
    });
    let en_passant = if captures_en_passant { fields[3] } else { "-" };
    [fields[0], fields[1], fields[2], en_passant].join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Every action of every position of random games is played.
    #[test]
    fn a_mate_in_one_is_known_where_an_action_mates(
        choices in choices(160),
        start in 0..5usize,
        underpromotions in any::<bool>(),
    ) {
        // In the fourth one only a promotion to a knight mates; in the last one mate comes before the draw of the fifty moves.
        let fen = [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "r3k3/1P4P1/2q2R2/8/8/2R2Q2/1p4p1/4K2R w Kq - 0 1",
            "4k3/6R1/5Q2/8/8/2q5/1r6/3K4 b - - 0 1",
            "6bn/5Ppk/7p/8/8/8/8/K7 w - - 0 1",
            "7k/8/6K1/8/8/8/R7/8 w - - 99 80",
        ][start];
        let mut state = Chess::start(&Rules { underpromotions }, Some(fen)).unwrap();
        play(&mut state, &choices, |state, _| {
            let win = KnownOutcome { outcome: Outcome::Won(state.to_move()), actions: 1 };
            assert_eq!(state.known(), wins_at_once(state).then_some(win), "{}", state.position());
        });
    }

    /// Few pieces and long games, so that positions recur. Every position is compared with all earlier ones.
    #[test]
    fn occurrences_are_counted_over_the_whole_game(choices in choices(160), start in 0..3usize) {
        let mut state = at([
            "4k3/pp6/8/8/8/8/PP6/4K3 w - - 0 1",
            "4k2r/7p/8/8/8/8/P7/R3K3 w Qk - 0 1",
            "4k3/4p3/3p4/8/3P1P2/8/8/4K3 b - - 0 1",
        ][start]);
        let mut seen: HashMap<String, u32> = HashMap::new();
        let mut seen_raw: HashMap<String, u32> = HashMap::new();
        play(&mut state, &choices, |state, _| {
            let earlier = seen.entry(fide_key(state)).or_default();
            assert_eq!(state.earlier_occurrences(), *earlier);
            *earlier += 1;
            let raw = state.position().rsplitn(3, ' ').last().unwrap().to_owned();
            let earlier = seen_raw.entry(raw).or_default();
            assert_eq!(repetition_planes(state), [1, 2].map(|times| u32::from(*earlier >= times)));
            *earlier += 1;
        });
    }

    /// A draw by an action is known if it comes from a repetition or from the fifty-move rule, and then only.
    #[test]
    fn a_draw_in_one_is_known(choices in choices(200), start in 0..4usize) {
        let mut state = at([
            "4k3/pp6/8/8/8/8/PP6/4K3 w - - 0 1",
            "4k2r/7p/8/8/8/8/P7/R3K3 w Qk - 0 1",
            "7k/7p/7P/8/8/p7/P7/K7 w - - 0 1",
            "7k/7p/7P/8/8/p7/P7/K7 w - - 93 60",
        ][start]);
        play(&mut state, &choices, |state, _| {
            let draws = |by_rule: bool| legal(state).into_iter().any(|action| {
                let mut next = state.clone();
                next.play(action).unwrap();
                let is_by_rule = next.earlier_occurrences() >= 2 || next.clock() >= 100;
                next.outcome() == Some(Outcome::Draw) && (is_by_rule || !by_rule)
            });
            assert!(!draws(true) || state.can_draw(), "{}", state.position());
            assert!(draws(false) || !state.can_draw(), "{}", state.position());
        });
    }
}
