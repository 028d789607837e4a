//! Symmetries of rows agree with symmetries of states, in every game and representation.

use std::collections::HashSet;

use games::{
    Game, RowSymmetries, Symmetry,
    chess::{self, Chess},
    connect_four::ConnectFour,
    othello::Othello,
    paco_sako::PacoSako,
};
use proptest::prelude::*;

use crate::play::{choices, legal};

/// Compares the symmetries of one state in one representation: their number, rows, planes and policies.
fn compare<G: Game>(state: &G, encoding: G::Encoding, symmetries: &RowSymmetries) {
    let layout = G::layout(encoding);
    let planes = |row: &[u32]| {
        let mut tensor = vec![0.0; layout.stack().unwrap().tensor_len()];
        layout.stack().unwrap().expand(row, &mut tensor).unwrap();
        tensor
    };
    let mut plain = Vec::new();
    state.write_row(encoding, Symmetry::IDENTITY, &mut plain);
    let count = symmetries.count(&plain);
    for symmetry in (0..=G::SYMMETRIES).map(Symmetry) {
        assert_eq!(
            symmetry.0 < count,
            state.allows(symmetry),
            "{symmetry:?} of {state:?}"
        );
        if !state.allows(symmetry) {
            continue;
        }
        let (mut turned, mut written) = (plain.clone(), Vec::new());
        symmetries.turn_row(symmetry, &mut turned);
        state.write_row(encoding, symmetry, &mut written);
        assert_eq!(planes(&turned), planes(&written));
        let mut seen = HashSet::new();
        for action in legal(state) {
            let entry = state.policy_index(encoding, Symmetry::IDENTITY, action);
            let turned = symmetries.turn_action(symmetry, entry);
            assert_eq!(turned, state.policy_index(encoding, symmetry, action));
            assert!(seen.insert(turned));
        }
    }
}

fn check_game<G: Game>(rules: &G::Rules, start: Option<&str>, choices: &[u16]) {
    let representations: Vec<(G::Encoding, RowSymmetries)> = (0..8)
        .filter_map(|options| G::encoding(options).ok())
        .map(|encoding| (encoding, G::row_symmetries(encoding)))
        .collect();
    assert!(!representations.is_empty());
    let mut state = G::start(rules, start).unwrap();
    for &choice in choices {
        for (encoding, symmetries) in &representations {
            compare(&state, *encoding, symmetries);
        }
        let actions = legal(&state);
        let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else {
            return;
        };
        state.play(action).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn othello_and_connect_four(choices in choices(64)) {
        check_game::<Othello>(&Default::default(), None, &choices);
        check_game::<ConnectFour>(&Default::default(), None, &choices);
    }

    /// Start positions with and without castling rights, with all promotions, and with an en-passant square.
    #[test]
    fn chess(choices in choices(100), start in 0..4usize) {
        let start = [
            "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
            "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
            "r6q/4k3/8/pP6/5pPp/8/3K4/Q6R b - g3 7 33",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        ][start];
        check_game::<Chess>(&chess::Rules { underpromotions: true }, Some(start), &choices);
    }

    #[test]
    fn paco_sako(choices in choices(200), has_rights: bool) {
        let start = if has_rights { "AHah" } else { "-" };
        let start = format!("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 {start} - -");
        check_game::<PacoSako>(&Default::default(), Some(&start), &choices);
    }
}

#[test]
fn unknown_symmetries_and_entries_change_nothing() {
    let symmetries = Othello::row_symmetries(());
    let mut row = vec![3; 65];
    symmetries.turn_row(Symmetry(8), &mut row);
    symmetries.turn_row(Symmetry(255), &mut row);
    assert_eq!(row, vec![3; 65]);
    assert_eq!(symmetries.turn_action(Symmetry(3), u32::MAX), u32::MAX);
    assert_eq!(symmetries.turn_action(Symmetry(200), 5), 5);
    assert_eq!(RowSymmetries::none().count(&row), 1);
}
