//! Values with their point of view as a type, so that a sign error does not compile.
//!
//! A network gives a [`MoverValue`]; a search tree stores a [`FirstValue`]. Conversions need the player to act. The idea is
//! from kZero.
//!
//! ```
//! use games::{MoverValue, Player};
//!
//! // Good for the second player, who is to act, and so bad for the first.
//! let value = MoverValue::new(0.5).of_first(Player::Second);
//! assert_eq!(value.get(), -0.5);
//! assert_eq!(value.seen_by(Player::Second).get(), 0.5);
//! ```

use serde::{Deserialize, Serialize};

/// One of the two players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Player {
    /// Player who begins: White in chess, Black in Othello, the only one of a one-player game.
    First,
    /// Opponent of the first player.
    Second,
}

impl Player {
    /// Returns the opponent of this player.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// Returns `1.0` for the first player, `-1.0` for the second.
    pub const fn sign(self) -> f32 {
        match self {
            Self::First => 1.0,
            Self::Second => -1.0,
        }
    }

    /// Returns `0` for the first player, `1` for the second.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Value in `[-1, 1]` from the first player's point of view.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct FirstValue(f32);

/// Value in `[-1, 1]` of a state, from the point of view of the player to act in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct MoverValue(f32);

impl FirstValue {
    /// Wraps a number that is from the first player's point of view.
    pub const fn new(value: f32) -> Self {
        Self(value)
    }

    /// Returns the value as a number, from the first player's point of view.
    pub const fn get(self) -> f32 {
        self.0
    }

    /// Returns the value from the point of view of `player`, who acts in the state.
    pub fn seen_by(self, player: Player) -> MoverValue {
        MoverValue(self.0 * player.sign())
    }

    /// Returns the value times `discount`, for one step of a one-player game.
    pub fn discounted(self, discount: f32) -> Self {
        Self(self.0 * discount)
    }
}

impl MoverValue {
    /// Wraps a number that is from the point of view of the player to act.
    pub const fn new(value: f32) -> Self {
        Self(value)
    }

    /// Returns the value as a number, from the point of view of the player to act.
    pub const fn get(self) -> f32 {
        self.0
    }

    /// Returns the value from the first player's point of view. `mover` is the player to act in the state.
    pub fn of_first(self, mover: Player) -> FirstValue {
        FirstValue(self.0 * mover.sign())
    }
}
