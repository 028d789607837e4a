//! Values that carry whose point of view they are in, so that a sign error does not compile.
//!
//! The idea of typed points of view is kZero's; a network answers in [`MoverValue`], a search
//! tree stores [`FirstValue`], and the only way from one to the other names the player.

use crate::game::Player;

/// A value in `[-1, 1]` from the first player's point of view.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct FirstValue(f32);

/// A value in `[-1, 1]` from the point of view of the player to act in the state it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct MoverValue(f32);

impl FirstValue {
    /// Wraps a number that is known to be the first player's.
    pub const fn new(value: f32) -> Self {
        Self(value)
    }

    /// The number, from the first player's point of view.
    pub const fn get(self) -> f32 {
        self.0
    }

    /// The same value as `player` sees it.
    pub fn seen_by(self, player: Player) -> MoverValue {
        MoverValue(self.0 * player.sign())
    }

    /// The value after one more discounted step.
    pub fn discounted(self, discount: f32) -> Self {
        Self(self.0 * discount)
    }
}

impl MoverValue {
    /// Wraps a number that is known to be from the mover's point of view.
    pub const fn new(value: f32) -> Self {
        Self(value)
    }

    /// The number, from the mover's point of view.
    pub const fn get(self) -> f32 {
        self.0
    }

    /// The same value from the first player's point of view; `mover` acts in the state it belongs to.
    pub fn of_first(self, mover: Player) -> FirstValue {
        FirstValue(self.0 * mover.sign())
    }
}
