//! Symmetries of rows of planes, as tables of squares and policy entries.

use crate::{
    RowLayout,
    symmetries::{RowMaps, RowSymmetries, Symmetry},
};

/// Symmetries of rows of planes, as tables of squares and policy entries.
#[derive(Clone, Debug)]
struct PlaneMaps {
    /// Tables of the symmetries from 1 on.
    tables: Vec<Tables>,
    /// Number of leading values of a row that are indices.
    entries: usize,
    /// Number of squares of a plane.
    area: usize,
    /// Places of the values that must all be 0 for a symmetry to apply.
    barriers: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Tables {
    squares: Vec<u32>,
    actions: Vec<u32>,
}

/// Returns the symmetries 1 to `count - 1` of rows of `layout`. `square` and `action` give the image of a square and of a
/// policy entry. No symmetry applies to a row with a value other than 0 in a constant plane of `barriers`, e.g. a castling
/// right. Rows that are not planes have no symmetries.
pub(crate) fn symmetries(
    layout: &RowLayout,
    count: u8,
    barriers: &[u32],
    square: impl Fn(Symmetry, u32) -> u32,
    action: impl Fn(Symmetry, u32) -> u32,
) -> RowSymmetries {
    let Ok(stack) = layout.stack() else {
        return RowSymmetries::none();
    };
    let area = stack.squares();
    let tables = |symmetry| Tables {
        squares: (0..area as u32).map(|from| square(symmetry, from)).collect(),
        actions: (0..layout.actions).map(|from| action(symmetry, from)).collect(),
    };
    let entries = stack.entries as usize;
    RowSymmetries::new(PlaneMaps {
        tables: (1..count).map(Symmetry).map(tables).collect(),
        entries,
        area,
        barriers: (entries..)
            .zip(&stack.constants)
            .filter(|(_, constant)| barriers.contains(&constant.plane))
            .map(|(place, _)| place)
            .collect(),
    })
}

impl PlaneMaps {
    fn tables(&self, symmetry: Symmetry) -> Option<&Tables> {
        self.tables.get(usize::from(symmetry.0).checked_sub(1)?)
    }
}

impl RowMaps for PlaneMaps {
    fn count(&self, row: &[u32]) -> u8 {
        let is_barred = |&place: &usize| row.get(place).is_some_and(|&value| value != 0);
        if self.barriers.iter().any(is_barred) {
            return 1;
        }
        self.tables.len() as u8 + 1
    }

    fn turn_row(&self, symmetry: Symmetry, row: &mut [u32]) {
        let Some(tables) = self.tables(symmetry) else {
            return;
        };
        for index in row.iter_mut().take(self.entries) {
            let square = *index as usize % self.area;
            *index = *index - square as u32 + tables.squares[square];
        }
    }

    fn turn_action(&self, symmetry: Symmetry, entry: u32) -> u32 {
        self.tables(symmetry)
            .and_then(|tables| tables.actions.get(entry as usize))
            .copied()
            .unwrap_or(entry)
    }

    fn turn_square(&self, symmetry: Symmetry, square: u32) -> u32 {
        self.tables(symmetry)
            .and_then(|tables| tables.squares.get(square as usize))
            .copied()
            .unwrap_or(square)
    }
}
