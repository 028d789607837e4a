//! [`ConnectFour`]: the state of a game.

use super::board;
use crate::value::Player;

/// Number of columns.
pub const COLUMNS: u32 = 7;
/// Number of cells of a column.
pub const ROWS: u32 = 6;

/// A position of Connect Four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectFour {
    /// Discs of the player to move.
    pub(super) own: u64,
    /// Discs of the other player.
    pub(super) other: u64,
    pub(super) to_move: Player,
    /// True if the other player has four in a line.
    pub(super) lost: bool,
}

impl ConnectFour {
    /// The empty board.
    pub const EMPTY: Self = Self {
        own: 0,
        other: 0,
        to_move: Player::First,
        lost: false,
    };

    /// Returns the number of discs on the board.
    pub const fn discs(&self) -> u32 {
        (self.own | self.other).count_ones()
    }

    /// Returns the discs of the player to move, then of the other: bit `8·row + column`, row 0 at the bottom.
    pub const fn bitboards(&self) -> (u64, u64) {
        (self.own, self.other)
    }

    /// Returns the columns that can be played, as bits 0 to 6. None once the game is over.
    pub(super) fn open_columns(&self) -> u64 {
        if self.lost {
            return 0;
        }
        board::columns(board::landings(self.own | self.other))
    }

    pub(super) fn drop_into(&mut self, column: u32) {
        let landing = board::landings(self.own | self.other) & (board::COLUMN << (column & 7));
        let own = self.own | landing;
        *self = Self {
            own: self.other,
            other: own,
            to_move: self.to_move.other(),
            lost: board::has_four(own),
        };
    }
}
