//! Index row: one entry for each square, then the player to move.
//!
//! Each square is set in exactly one of three planes: own stone, other stone, empty.

use super::state::Gomoku;
use crate::{
    bits,
    codec::PolicyHead,
    form::RowForm,
    game::Game,
    layout::RowLayout,
    planes::{self, ConstantPlane, PlaneStack, SQUARES},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

const OWN: u32 = 0;
const OTHER: u32 = 1;
const EMPTY: u32 = 2;
const FIRST_TO_MOVE: u32 = 3;

pub(super) fn layout() -> RowLayout {
    RowLayout {
        game: Gomoku::NAME.into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            entries: SQUARES as u32,
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
        actions: Gomoku::ACTIONS,
        mirrored_actions: false,
        // Each action is a square, so the policy is one plane.
        policy_head: PolicyHead::Planes,
    }
}

/// Returns the image of a square, which is also a policy entry.
pub(super) const fn turn_square(symmetry: Symmetry, square: u32) -> u32 {
    bits::turn_square(square, symmetry.0)
}

pub(super) fn symmetries() -> RowSymmetries {
    planes::symmetries(&layout(), Gomoku::SYMMETRIES, &[], turn_square, turn_square)
}

pub(super) fn write(state: &Gomoku, symmetry: Symmetry, row: &mut Vec<u32>) {
    let [own, other] = [state.own, state.other].map(|stones| bits::turn(stones, symmetry.0));
    let plane = |square: u32| {
        if own >> square & 1 == 1 {
            OWN
        } else if other >> square & 1 == 1 {
            OTHER
        } else {
            EMPTY
        }
    };
    row.extend((0..SQUARES as u32).map(|square| 64 * plane(square) + square));
    row.push(u32::from(state.to_move == Player::First));
}
