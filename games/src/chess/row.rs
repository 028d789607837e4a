//! Index row and its layout: the 22 planes of dlchess' encoding, version 2.
//!
//! A row has 32 entries for pieces (by plane, then by square; the first entry repeated for missing pieces), one for the
//! en-passant square (the first entry repeated if there is none), then the constants. The board is turned by 180° when
//! Black moves: files as well as ranks.

use cozy_chess::{Color, Piece};

use super::{
    history::en_passant_square,
    moves::{self, MIRROR, View},
    state::Chess,
};
use crate::{
    bits,
    game::Game,
    layout::{RowForm, RowLayout},
    planes::{self, ConstantPlane, PlaneStack},
    symmetries::RowSymmetries,
};

const PIECES: usize = 32;
const PIECE_PLANES: u32 = 12;
const EN_PASSANT_PLANE: u32 = 21;
const ONES_PLANE: u32 = 15;
/// Largest half-move clock. FIDE's rules end every game by the 75th move without progress.
pub(super) const LARGEST_CLOCK: u8 = 150;

/// Name, plane, divisor and largest value of the constant planes, in the row's order. Plane 15 is the ones, plane 21 the
/// en-passant square.
const CONSTANTS: [(&str, u32, u32, u32); 8] = [
    ("position occurred before", 12, 1, 1),
    ("position occurred twice before", 13, 1, 1),
    ("black to move", 14, 1, 1),
    ("mover castles king side", 16, 1, 1),
    ("mover castles queen side", 17, 1, 1),
    ("opponent castles king side", 18, 1, 1),
    ("opponent castles queen side", 19, 1, 1),
    ("half-moves without progress", 20, 100, LARGEST_CLOCK as u32),
];

/// Number of symmetries: the identity and the mirror of the files.
pub(super) const SYMMETRIES: u8 = 2;

pub(super) fn layout() -> RowLayout {
    RowLayout {
        game: Chess::NAME.into(),
        options: 0,
        form: RowForm::Planes(PlaneStack {
            height: 8,
            width: 8,
            entries: PIECES as u32 + 1,
            planes: 22,
            sparse: (0..PIECE_PLANES).chain([EN_PASSANT_PLANE]).collect(),
            constants: CONSTANTS
                .map(|(name, plane, divisor, max)| ConstantPlane {
                    name: name.into(),
                    plane,
                    divisor,
                    max,
                })
                .into(),
            ones: vec![ONES_PLANE],
        }),
        actions: moves::ACTIONS,
        mirrored_actions: true,
        policy_head: crate::PolicyHead::Planes,
    }
}

/// Planes of castling rights. A position with a castling right has no symmetries.
const RIGHTS: [u32; 4] = [16, 17, 18, 19];

pub(super) fn symmetries() -> RowSymmetries {
    let mirrored = moves::mirrored_entries();
    planes::symmetries(
        &layout(),
        SYMMETRIES,
        &RIGHTS,
        |_, square| MIRROR.square(square),
        |_, entry| mirrored.get(entry as usize).copied().unwrap_or(entry),
    )
}

pub(super) fn write(state: &Chess, view: View, row: &mut Vec<u32>) {
    let board = &state.board;
    let begin = row.len();
    row.reserve(PIECES + 1 + CONSTANTS.len());
    let mover = board.side_to_move();
    let mut plane = 0;
    for color in [mover, !mover] {
        for piece in Piece::ALL {
            let seen = as_seen(board.colored_pieces(color, piece).0, view);
            row.extend(bits::squares(seen).map(|square| 64 * plane + square));
            plane += 1;
        }
    }
    // Every board has two kings, and at most sixteen pieces of each colour.
    let first = row.get(begin).copied().unwrap_or_default();
    row.resize(begin + PIECES, first);
    row.push(
        en_passant_square(board).map_or(first, |square| 64 * EN_PASSANT_PLANE + view.square(square as u32)),
    );

    let occurred = state.history.occurrences_with_idle_en_passant(board);
    let (own, other) = (board.castle_rights(mover), board.castle_rights(!mover));
    row.extend([
        u32::from(occurred >= 1),
        u32::from(occurred >= 2),
        u32::from(mover == Color::Black),
        u32::from(own.short.is_some()),
        u32::from(own.long.is_some()),
        u32::from(other.short.is_some()),
        u32::from(other.long.is_some()),
        u32::from(state.clock.min(LARGEST_CLOCK)),
    ]);
}

const fn as_seen(bits: u64, view: View) -> u64 {
    let bits = if view.turned { bits.reverse_bits() } else { bits };
    if view.mirrored { bits::mirror(bits) } else { bits }
}
