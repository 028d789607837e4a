//! Index row: one entry for each of the 42 cells, bottom row first, then the player to move.
//!
//! Each cell is set in exactly one of three planes: own disc, other disc, empty. So no entry is absent, even on the empty
//! board, and the planes show the network which part of the 8×8 squares is the board.

use super::{
    board,
    state::{COLUMNS, ConnectFour, ROWS},
};
use crate::{
    form::RowForm,
    game::Game,
    layout::RowLayout,
    planes::{self, ConstantPlane, PlaneStack},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

const OWN: u32 = 0;
const OTHER: u32 = 1;
const EMPTY: u32 = 2;
const FIRST_TO_MOVE: u32 = 3;

pub(super) fn layout() -> RowLayout {
    RowLayout {
        game: ConnectFour::NAME.into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: ROWS * COLUMNS,
            planes: 4,
            sparse: vec![OWN, OTHER, EMPTY],
            constants: vec![ConstantPlane {
                name: "first player to move".into(),
                plane: FIRST_TO_MOVE,
                divisor: 1,
                max: 1,
            }],
            ones: vec![],
        }),
        actions: ConnectFour::ACTIONS,
        mirrored_actions: false,
        policy_head: crate::PolicyHead::Dense,
    }
}

/// Returns the image of a column, which is also a policy entry. The file beside the board stays where it is.
pub(super) const fn turn_column(symmetry: Symmetry, column: u32) -> u32 {
    match symmetry {
        Symmetry::IDENTITY => column,
        _ if column >= COLUMNS => column,
        _ => COLUMNS - 1 - column,
    }
}

pub(super) fn symmetries() -> RowSymmetries {
    let turn_square = |symmetry, square: u32| square / 8 * 8 + turn_column(symmetry, square % 8);
    planes::symmetries(&layout(), ConnectFour::SYMMETRIES, &[], turn_square, turn_column)
}

pub(super) fn write(state: &ConnectFour, symmetry: Symmetry, row: &mut Vec<u32>) {
    let (own, other) = match symmetry {
        Symmetry::IDENTITY => (state.own, state.other),
        _ => (board::mirror(state.own), board::mirror(state.other)),
    };
    let plane = |square: u32| {
        let has = |discs: u64| (discs >> square & 1) as u32;
        EMPTY - has(other) - 2 * has(own)
    };
    row.reserve((ROWS * COLUMNS + 1) as usize);
    for rank in 0..ROWS {
        row.extend((8 * rank..8 * rank + COLUMNS).map(|square| 64 * plane(square) + square));
    }
    row.push(u32::from(state.to_move == Player::First));
}
