//! Links of stones to edges: each player's stones that a chain of neighbours joins to one of the player's edges.

use crate::{
    value::Player,
    wide::{MOST, Wide},
};

/// Cells that have a neighbour on the next file, for boards of each side.
static NOT_LAST_FILE: [Wide; MOST as usize + 1] = Wide::first_files(1);

/// Stones of one player that are linked to the first and to the last of the player's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Links([Wide; 2]);

impl Links {
    /// Links of a player without stones.
    pub const NONE: Self = Self([Wide::EMPTY; 2]);

    /// Adds the links of a new stone of a player, whose `stones` hold it. Each stone is added to a set once, so a game costs little
    /// more than its stones.
    pub fn add(&mut self, cell: u32, stones: &Wide, player: Player, side: u32) {
        for (linked, edge) in self.0.iter_mut().zip(edges(player, side)) {
            let mut new = Wide::of(cell) & (edge | neighbours(*linked, side));
            while !new.is_empty() {
                *linked = *linked | new;
                new = neighbours(new, side) & *stones & !*linked;
            }
        }
    }

    /// True if a chain of stones joins both edges.
    pub fn are_joined(&self) -> bool {
        let [first, last] = self.0;
        !(first & last).is_empty()
    }

    /// True if one more stone of the player, on one of the `empty` cells, joins both edges.
    pub fn can_join(&self, empty: &Wide, player: Player, side: u32) -> bool {
        let edges = edges(player, side);
        let [first, last] = std::array::from_fn(|at| edges[at] | neighbours(self.0[at], side));
        !(first & last & *empty).is_empty()
    }
}

/// Returns the cells on the two edges that a player connects.
fn edges(player: Player, side: u32) -> [Wide; 2] {
    let cells = Wide::below(side * side);
    match player {
        Player::First => [Wide::below(side), cells & !Wide::below(side * (side - 1))],
        Player::Second => {
            let not_last = not_last_file(side);
            [cells & !(not_last << 1), cells & !not_last]
        }
    }
}

/// Returns all neighbours of these cells. They may lie one rank next to the board.
fn neighbours(cells: Wide, side: u32) -> Wide {
    let not_last = cells & not_last_file(side);
    let not_first = cells & (not_last_file(side) << 1);
    let ranks = cells << side | cells >> side;
    let files = not_last << 1 | not_first >> 1;
    let diagonals = not_first << (side - 1) | not_last >> (side - 1);
    ranks | files | diagonals
}

fn not_last_file(side: u32) -> Wide {
    NOT_LAST_FILE.get(side as usize).copied().unwrap_or(Wide::EMPTY)
}
