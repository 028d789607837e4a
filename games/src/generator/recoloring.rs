//! Permutations of the colours as maps of rows and policies: the game's exact symmetries (see
//! [`Change::of_colors`]), for training, which has rows and no states.

use super::{
    clan::mix,
    grammar::{COLOR, DIRECTION},
    moves::{MOVES, Move},
    row,
    symmetry::Change,
};

/// What a [`Symmetry`](crate::Symmetry) can number, less the identity.
const MOST: usize = 254;

/// Some permutations of the colours that fresh shapes never have, the identity left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recolorings(Vec<Change>);

impl Recolorings {
    /// Always the same ones, of 40,320 that there are.
    pub(super) fn new() -> Self {
        let mut number = 0;
        let mut draw = |below: usize| {
            number += 1;
            (mix(number) % below as u64) as usize
        };
        Self((0..MOST).map(|_| Change::of_colors(&mut draw)).collect())
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Recolours a valid row in place.
    pub(crate) fn row(&self, number: usize, row: &mut [u32]) {
        let Some(change) = self.0.get(number) else { return };
        let (imps, grids) = row::parts_mut(row);
        for imp in imps {
            let value = *imp as u8;
            if (COLOR..DIRECTION).contains(&value) {
                *imp = *imp & !0xff | u32::from(COLOR + change.color(value - COLOR));
            }
        }
        for cells in grids {
            *cells = u32::from_le_bytes(cells.to_le_bytes().map(|cell| change.color(cell)));
        }
    }

    /// The same action after it.
    pub(crate) fn action(&self, number: usize, action: u32) -> u32 {
        let own = (action as usize % MOVES) as u8;
        let Some(color) = own.checked_sub(Move::SET_COLOR).filter(|&color| color < 10) else {
            return action;
        };
        let changed = self.0.get(number).map_or(color, |change| change.color(color));
        action - u32::from(color) + u32::from(changed)
    }
}
