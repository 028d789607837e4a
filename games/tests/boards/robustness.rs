//! No input makes a game panic or give values out of range.

use games::{
    Game, Symmetry,
    chess::{self, Chess},
    connect_four::ConnectFour,
    othello::Othello,
};
use proptest::prelude::*;

use crate::play::{choices, legal, play};

/// Calls all methods of a state, and checks the ranges of their results.
fn check_methods<G: Game<Encoding = ()>>(state: &G) {
    let layout = G::layout(());
    for symmetry in (0..G::SYMMETRIES)
        .map(Symmetry)
        .filter(|&symmetry| state.allows(symmetry))
    {
        let mut row = vec![7];
        state.write_row((), symmetry, &mut row);
        assert_eq!(row[0], 7, "a row is appended");
        layout.validate(&row[1..]).unwrap();
        let mut indices: Vec<u32> = legal(state)
            .into_iter()
            .map(|action| state.policy_index((), symmetry, action))
            .collect();
        indices.sort_unstable();
        indices.dedup();
        assert_eq!(
            indices.len(),
            legal(state).len(),
            "each legal action has a policy entry of its own"
        );
        assert!(indices.iter().all(|&index| index < G::ACTIONS));
    }
    assert_eq!(state.outcome().is_some(), legal(state).is_empty());
    assert!(legal(state).is_sorted());
    let _ = (state.position(), state.to_move());
}

/// Plays at random, then tries the actions of `odd`, which may be any numbers. Refused actions must change nothing.
fn check_play<G: Game<Encoding = ()> + PartialEq>(mut state: G, choices: &[u16], odd: &[u32]) {
    play(&mut state, choices, |state, _| check_methods(state));
    check_methods(&state);
    let again = G::start(&Default::default(), Some(&state.position())).unwrap();
    assert_eq!(again.position(), state.position());
    for &action in odd {
        let before = state.clone();
        match state.play(action) {
            Ok(()) => check_methods(&state),
            Err(_) => assert_eq!(state, before),
        }
    }
    // Unchecked play of any numbers must not panic, nor leave a state whose methods panic.
    for &action in odd {
        state.play_legal(action);
        let _ = (state.outcome(), state.position(), legal(&state).len());
        state.write_row((), Symmetry::IDENTITY, &mut Vec::new());
    }
}

fn odd_actions(actions: u32) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![0..actions + 2, any::<u32>()], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn chess_accepts_any_actions(choices in choices(120), odd in odd_actions(Chess::ACTIONS), underpromotions: bool) {
        let state = Chess::start(&chess::Rules { underpromotions }, None).unwrap();
        check_play(state, &choices, &odd);
    }

    #[test]
    fn othello_accepts_any_actions(choices in choices(70), odd in odd_actions(Othello::ACTIONS)) {
        check_play(Othello::initial(), &choices, &odd);
    }

    #[test]
    fn connect_four_accepts_any_actions(choices in choices(43), odd in odd_actions(ConnectFour::ACTIONS)) {
        check_play(ConnectFour::EMPTY, &choices, &odd);
    }

    #[test]
    fn no_text_makes_a_start_panic(text in "\\PC{0,80}") {
        let _ = Chess::start(&Default::default(), Some(&text));
        let _ = Othello::start(&Default::default(), Some(&text));
        let _ = ConnectFour::start(&Default::default(), Some(&text));
    }

    /// One letter of a valid position is replaced.
    #[test]
    fn a_position_with_one_wrong_letter_makes_no_start_panic(
        choices in choices(60),
        at: prop::sample::Index,
        letter in "[a-hKQRBNPkqrbnp1-9xoXO/ -]",
    ) {
        fn check<G: Game<Encoding = ()>>(choices: &[u16], at: prop::sample::Index, letter: &str) {
            let mut state = G::start(&Default::default(), None).unwrap();
            play(&mut state, choices, |_, _| {});
            let mut text = state.position();
            let place = at.index(text.len());
            text.replace_range(place..=place, letter);
            if let Ok(state) = G::start(&Default::default(), Some(&text)) {
                check_methods(&state);
            }
        }
        check::<Chess>(&choices, at, &letter);
        check::<Othello>(&choices, at, &letter);
        check::<ConnectFour>(&choices, at, &letter);
    }
}

#[test]
fn other_representation_numbers_are_refused() {
    assert!(Chess::encoding(0).is_ok() && Chess::encoding(1).is_err());
    assert!(Othello::encoding(0).is_ok() && Othello::encoding(1).is_err());
    assert!(ConnectFour::encoding(0).is_ok() && ConnectFour::encoding(1).is_err());
    for layout in [Chess::layout(()), Othello::layout(()), ConnectFour::layout(())] {
        assert_eq!(layout.check(), Ok(()), "{}", layout.game);
    }
}
