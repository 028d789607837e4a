//! Index row: 64 entries, then the player to move.
//!
//! There is one entry for each disc (first those of the player to move, each side in the order of the squares). The first
//! entry is repeated for every empty square.

use super::state::{Othello, PASS};
use crate::{
    bits,
    form::RowForm,
    game::Game,
    layout::RowLayout,
    planes::{self, ConstantPlane, PlaneStack, SQUARES},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
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

/// Returns the image of a policy entry: squares turn with the board, the pass stays.
pub(super) fn turn_entry(symmetry: Symmetry, entry: u32) -> u32 {
    match entry {
        PASS.. => entry,
        square => turn_square(symmetry, square),
    }
}

fn turn_square(symmetry: Symmetry, square: u32) -> u32 {
    bits::turn_square(square, symmetry.0)
}

pub(super) fn symmetries() -> RowSymmetries {
    planes::symmetries(&layout(), Othello::SYMMETRIES, &[], turn_square, turn_entry)
}

pub(super) fn write(state: &Othello, symmetry: Symmetry, row: &mut Vec<u32>) {
    let begin = row.len();
    row.reserve(SQUARES + 1);
    for (plane, discs) in [(OWN, state.own), (OTHER, state.other)] {
        row.extend(bits::squares(bits::turn(discs, symmetry.0)).map(|square| 64 * plane + square));
    }
    // A position has at least one disc: `text` refuses an empty board, and no disc leaves the board.
    let first = row.get(begin).copied().unwrap_or_default();
    row.resize(begin + SQUARES, first);
    row.push(u32::from(state.to_move == Player::First));
}
