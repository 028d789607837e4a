//! [`Gomoku`]: the state of a game.

use crate::value::Player;

/// A position of Gomoku.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gomoku {
    /// Stones of the player to act: bit `8·rank + file`.
    pub(super) own: u64,
    /// Stones of the other player.
    pub(super) other: u64,
    pub(super) to_move: Player,
    /// True if the other player has five in a row.
    pub(super) is_lost: bool,
}

impl Gomoku {
    /// The empty board.
    pub const EMPTY: Self = Self {
        own: 0,
        other: 0,
        to_move: Player::First,
        is_lost: false,
    };

    /// Returns the stones of the first player (Black), then of the second: bit `8·rank + file`.
    pub const fn stones_by_player(&self) -> [u64; 2] {
        match self.to_move {
            Player::First => [self.own, self.other],
            Player::Second => [self.other, self.own],
        }
    }

    pub(super) const fn empty_squares(&self) -> u64 {
        if self.is_lost { 0 } else { !(self.own | self.other) }
    }
}

/// True if five of these stones stand in a row.
pub(super) const fn has_five(stones: u64) -> bool {
    /// Squares from which a row of five can run towards higher files.
    const RIGHTWARD: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    /// Squares from which a row of five can run towards lower files.
    const LEFTWARD: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ANYWHERE: u64 = u64::MAX;
    let directions = [(1, RIGHTWARD), (8, ANYWHERE), (9, RIGHTWARD), (7, LEFTWARD)];
    let mut found = 0;
    let mut direction = 0;
    while direction < directions.len() {
        let (step, starts) = directions[direction];
        let pairs = stones & stones >> step;
        let fours = pairs & pairs >> (2 * step);
        found |= fours & stones >> (4 * step) & starts;
        direction += 1;
    }
    found != 0
}
