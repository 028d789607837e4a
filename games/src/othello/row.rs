//! The index row: 64 entries, one for each square that holds a disc (the mover's discs first, each side in the
//! order of the squares), the first repeated for every empty square; then who moves.

use super::{Othello, PASS};
use crate::{
    bits,
    game::{Game, Player, Symmetry},
    layout::{ConstantPlane, PlaneStack, RowForm, RowLayout, SQUARES},
    symmetries::RowSymmetries,
};

const OWN: u32 = 0;
const OTHER: u32 = 1;
const FIRST_TO_MOVE: u32 = 2;
const ONES: u32 = 3;

pub(super) fn layout() -> RowLayout {
    RowLayout {
        game: Othello::NAME.into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: SQUARES as u32,
            planes: 4,
            sparse: vec![OWN, OTHER],
            constants: vec![ConstantPlane {
                name: "first player to move".into(),
                plane: FIRST_TO_MOVE,
                divisor: 1,
                max: 1,
            }],
            ones: vec![ONES],
        }),
        actions: Othello::ACTIONS,
        mirrored_actions: false,
        policy_head: crate::PolicyHead::Dense,
    }
}

pub(super) fn symmetries() -> RowSymmetries {
    let action = |symmetry, action| match action {
        PASS => PASS,
        square => bits::turn_square(square, symmetry),
    };
    let square = |symmetry, square| bits::turn_square(square, symmetry);
    RowSymmetries::new(&layout(), Othello::SYMMETRIES, &[], square, action)
}

pub(super) fn write(state: &Othello, symmetry: Symmetry, row: &mut Vec<u32>) {
    let begin = row.len();
    row.reserve(SQUARES + 1);
    for (plane, discs) in [(OWN, state.own), (OTHER, state.other)] {
        row.extend(bits::squares(bits::turn(discs, symmetry.0)).map(|square| 64 * plane + square));
    }
    // A position has at least one disc: `text` refuses others, and no disc ever leaves the board.
    let first = row.get(begin).copied().unwrap_or_default();
    row.resize(begin + SQUARES, first);
    row.push(u32::from(state.to_move == Player::First));
}
