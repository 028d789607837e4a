//! [`Othello`]: the state of a game.

use super::board;
use crate::{game::Action, value::Player};

/// Action that passes.
pub const PASS: Action = 64;

/// A position of Othello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Othello {
    /// Discs of the player to move.
    pub(super) own: u64,
    /// Discs of the other player.
    pub(super) other: u64,
    /// Squares on which the player to move may place a disc. If there is none, the player passes, or the game is over.
    pub(super) placements: u64,
    pub(super) to_move: Player,
    /// True if neither player can place a disc.
    pub(super) over: bool,
}

impl Othello {
    pub(super) fn new(own: u64, other: u64, to_move: Player) -> Self {
        let placements = board::placements(own, other);
        Self {
            own,
            other,
            placements,
            to_move,
            over: placements == 0 && board::placements(other, own) == 0,
        }
    }

    /// Returns the usual start: Black (first) on e4 and d5, White on d4 and e5.
    pub fn initial() -> Self {
        Self::new(1 << 28 | 1 << 35, 1 << 27 | 1 << 36, Player::First)
    }

    /// Returns the discs of the player to move, then of the other: bit `8·rank + file`.
    pub const fn bitboards(&self) -> (u64, u64) {
        (self.own, self.other)
    }
}
