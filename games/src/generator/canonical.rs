//! Canonical colours: one representative of all positions that differ by a permutation of the colours 2 to 9.
//!
//! These permutations are exact symmetries of the game (see [`Change::of_colors`]). The representative has its colours
//! numbered in the order in which they are met: in the grids of the problem, then in the clan. Colours that are not met
//! have the last numbers, in their own order. They are all alike, because nothing in the position tells them apart.

use super::{
    bounded::Color,
    clan::Clan,
    grid::Grid,
    moves::{Move, imp_and_move},
    problem::Problem,
    recoloring,
    symmetry::Change,
};
use crate::game::Action;

/// Numbers of the colours that were met so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Naming {
    /// Number of each colour. 0 for a colour of 2 to 9 that was not met.
    names: [u8; 10],
    /// Number of the next colour that is met.
    next: u8,
}

impl Naming {
    /// Naming in which no colour was met.
    pub(super) const NONE: Self = Self {
        names: [0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        next: 2,
    };

    /// Returns the naming after the grids of a problem.
    pub(super) fn of_problem(problem: &Problem) -> Self {
        let mut naming = Self::NONE;
        for grid in [problem.target(), problem.second_target()].into_iter().flatten() {
            naming.rename(grid, |_| ());
        }
        naming
    }

    /// Meets the cells of a grid, and passes the number of each to `each`. Absent cells keep theirs.
    pub(super) fn rename(&mut self, grid: &Grid, mut each: impl FnMut(u8)) {
        for &cell in grid.cells() {
            each(self.meet(cell));
        }
    }

    /// Returns the number of a colour, which is new if the colour was not met. The symbol of an absent cell stays.
    fn meet(&mut self, color: u8) -> u8 {
        match self.names.get_mut(usize::from(color)) {
            Some(name) if *name == 0 && color > 1 => {
                *name = self.next;
                self.next += 1;
                *name
            }
            Some(&mut name) => name,
            None => color,
        }
    }

    /// Returns the permutation to the canonical colours of a position with this clan.
    pub(super) fn with_clan(mut self, clan: &Clan) -> Change {
        for &value in clan.values() {
            if let Some(color) = Color::of(value) {
                self.meet(color.get());
            }
        }
        for color in 2..10 {
            self.meet(color);
        }
        Change::new(0, self.names).unwrap_or(Change::IDENTITY)
    }
}

/// Appends to `order` the places in `legal` of these actions, in the order of their policy entries after the change.
pub(super) fn order(change: &Change, legal: &[Action], order: &mut Vec<u32>) {
    let mut next = 0;
    // Actions of one imp stand together. A colour has no moves but those that set it, and only these change their order.
    for of_imp in legal.chunk_by(|&one, &other| imp_and_move(one).0 == imp_and_move(other).0) {
        let start = order.len();
        order.extend(next..next + of_imp.len() as u32);
        if of_imp.first().is_some_and(|&action| sets_color(action)) {
            order[start..].sort_by_key(|&place| recoloring::entry(change, legal[place as usize]));
        }
        next += of_imp.len() as u32;
    }
}

/// True if the action sets a colour.
pub(super) fn sets_color(action: Action) -> bool {
    (Move::SET_COLOR..=Move::SET_COLOR_9).contains(&imp_and_move(action).1.0)
}
