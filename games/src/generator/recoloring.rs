//! Permutations of the colours as maps of rows and policies. They are the exact symmetries of the game (see
//! [`Change::of_colors`]).

use super::{
    bounded::Color,
    clan::mix,
    moves::{MOVES, Move},
    row,
    symmetry::Change,
};
use crate::{Symmetry, symmetries::RowMaps};

/// Number of permutations: as many as a [`Symmetry`] can number, without the identity.
const MOST: usize = 254;

/// Permutations of the colours 2 to 9, which new shapes never have.
#[derive(Clone, Debug)]
pub(super) struct Recolorings(Vec<Change>);

impl Recolorings {
    /// Draws permutations out of the 40,320. Every call draws the same ones.
    pub(super) fn new() -> Self {
        let mut number = 0;
        let mut draw = |below: usize| {
            number += 1;
            (mix(number) % below as u64) as usize
        };
        Self((0..MOST).map(|_| Change::of_colors(&mut draw)).collect())
    }

    fn change(&self, symmetry: Symmetry) -> Option<&Change> {
        self.0.get(usize::from(symmetry.0).checked_sub(1)?)
    }
}

impl RowMaps for Recolorings {
    fn count(&self, _row: &[u32]) -> u8 {
        MOST as u8 + 1
    }

    fn turn_row(&self, symmetry: Symmetry, row: &mut [u32]) {
        if let Some(change) = self.change(symmetry) {
            recolor(change, row);
        }
    }

    fn turn_action(&self, symmetry: Symmetry, entry: u32) -> u32 {
        self.change(symmetry)
            .map_or(entry, |change| self::entry(change, entry))
    }
}

/// Permutes the colours of a valid row in place.
pub(super) fn recolor(change: &Change, row: &mut [u32]) {
    let (imps, grids) = row::parts_mut(row);
    for imp in imps {
        if let Some(color) = Color::of(*imp as u8) {
            *imp = *imp & !0xff | u32::from(Color::nearest(change.color(color.get())).value());
        }
    }
    for cells in &mut *grids {
        *cells = u32::from_le_bytes(cells.to_le_bytes().map(|cell| change.color(cell)));
    }
    row::sort_examples(grids);
}

/// Returns the policy entry of an action after a permutation of the colours. `action` is the entry before it.
pub(super) fn entry(change: &Change, action: u32) -> u32 {
    let own = (action as usize % MOVES) as u8;
    match own.checked_sub(Move::SET_COLOR).filter(|&color| color < 10) {
        Some(color) => action - u32::from(color) + u32::from(change.color(color)),
        None => action,
    }
}
