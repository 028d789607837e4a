//! Rows of Connect Four: one entry for each of the 42 cells, bottom row first, set in one of three planes (own disc, other disc,
//! empty), then the player to move. So no entry is absent, even on the empty board.

use super::{COLUMNS, ConnectFour, ROWS, SYMMETRIES, board};
use crate::{
    RowLayout,
    codec::PolicyHead,
    discs, planes,
    symmetries::{RowSymmetries, Symmetry},
};

/// Representation of the board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Number 0, of older versions: the cells lie in ranks 0–5 and files 0–6 of planes of 8×8 squares.
    Padded,
    /// Number 1: planes of 6 ranks and 7 files.
    #[default]
    Cells,
}

impl Encoding {
    /// Returns height and width of the planes.
    const fn sides(self) -> (u32, u32) {
        match self {
            Self::Padded => (8, 8),
            Self::Cells => (ROWS, COLUMNS),
        }
    }

    pub(super) fn layout(self) -> RowLayout {
        let (height, width) = self.sides();
        let mut layout = discs::layout::<ConnectFour>((height, width), COLUMNS, PolicyHead::Dense, true);
        layout.options = self as u32;
        if let crate::RowForm::Planes(stack) = &mut layout.form {
            stack.entries = ROWS * COLUMNS;
        }
        layout
    }

    pub(super) fn write(self, state: &ConnectFour, symmetry: Symmetry, row: &mut Vec<u32>) {
        let seen = match symmetry {
            Symmetry::IDENTITY => state.discs,
            _ => state.discs.map(board::mirror),
        };
        let (height, width) = self.sides();
        let cells =
            (0..ROWS).flat_map(|rank| (0..COLUMNS).map(move |file| (8 * rank + file, width * rank + file)));
        seen.write_cells(height * width, cells, row);
    }

    pub(super) fn symmetries(self) -> RowSymmetries {
        let (_, width) = self.sides();
        let turn_square =
            |symmetry, square: u32| square / width * width + turn_column(symmetry, square % width);
        planes::symmetries(&self.layout(), SYMMETRIES, &[], turn_square, turn_column)
    }
}

/// Returns the image of a column, which is also a policy entry. The file next to the board stays where it is.
pub(super) const fn turn_column(symmetry: Symmetry, column: u32) -> u32 {
    match symmetry {
        Symmetry::IDENTITY => column,
        _ if column >= COLUMNS => column,
        _ => COLUMNS - 1 - column,
    }
}
