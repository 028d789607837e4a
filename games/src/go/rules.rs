//! Switchable rules.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::Go;
use crate::{Game, StartError};

/// Positions that a stone may not recreate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Superko {
    /// The stones of any earlier position, as in the Tromp-Taylor rules.
    #[default]
    Positional,
    /// The stones of an earlier position in which the same player was to move.
    Situational,
}

/// Rules of a game. The default is for self-play.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Number of lines of the board in each direction, 2 to 19.
    pub size: u32,
    /// Points that White gets in compensation for Black's first move: a multiple of 0.5 from -361 to 361. With a whole number, games
    /// can be drawn.
    pub komi: f32,
    /// True if a stone may leave its own chain of several stones without a liberty; the chain is removed. By default this is illegal, as
    /// suicide of one stone always is.
    pub suicide: bool,
    /// Earlier positions that a stone may not recreate: `positional` (default): the same stones; `situational`: the same stones with
    /// the same player to move.
    pub superko: Superko,
    /// True if a game also ends once the player to move has won it with points that cannot be taken any more (Benson 1976). It saves
    /// the moves that change no result. People play with `false`: until two passes.
    pub early_end: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            size: 9,
            komi: 7.5,
            suicide: false,
            superko: Superko::Positional,
            early_end: true,
        }
    }
}

/// Largest compensation that a player can have, in points.
pub(super) const MOST_KOMI: f32 = 361.0;

impl Rules {
    /// Checks that the rules are possible.
    ///
    /// # Errors
    /// [`StartError`] that names the rule.
    pub(super) fn check(&self) -> Result<(), StartError> {
        if let Some(sizes) = Go::SIZES {
            sizes.check::<Go>(self.size)?;
        }
        let komi = self.komi;
        if komi.abs() <= MOST_KOMI && (2.0 * komi).fract() == 0.0 {
            return Ok(());
        }
        let reason =
            format!("`komi` is {komi}; multiples of 0.5 from -{MOST_KOMI} to {MOST_KOMI} are possible");
        Err(StartError::of::<Go>(reason))
    }

    /// Returns the compensation that White gets, in half points.
    pub(super) const fn half_points(&self) -> i32 {
        (2.0 * self.komi) as i32
    }
}
