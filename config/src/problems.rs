//! `[problems]`: the curriculum of games that consist of problems to solve.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, check::require};

/// Settings of the curriculum. Only the generator game uses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ProblemsConfig {
    /// Level of difficulty at the start of self-play, at least 1 (generator game: number of random moves that made the
    /// problem).
    pub level: u32,
    /// Highest level, at least `level`.
    pub max_level: u32,
    /// Raise the level when this share of its latest `window` problems was solved. Above 0, at most 1.
    pub raise_at: f32,
    /// Number of latest problems of the level over which the share for `raise_at` is computed, 1 to 100000.
    pub window: u32,
    /// Share of problems drawn from lower levels, 0 to 1, so that the network does not forget them.
    pub easier: f32,
    /// Store each unsolved game a second time, relabelled as a solution of the state it reached (hindsight replay; true or
    /// false).
    pub hindsight: bool,
    /// Share of games recorded from a known solution, of any level up to `max_level`, instead of played by the search. At
    /// least 0, below 1. Such games are supervised examples for a warm start.
    pub known_solutions: f32,
}

impl Default for ProblemsConfig {
    fn default() -> Self {
        Self {
            level: 1,
            max_level: 16,
            raise_at: 0.7,
            window: 100,
            easier: 0.3,
            hindsight: true,
            known_solutions: 0.5,
        }
    }
}

impl ProblemsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(self.level >= 1, "problems.level", "must be at least 1")?;
        require(
            self.max_level >= self.level,
            "problems.max_level",
            "must be at least problems.level",
        )?;
        require(
            self.raise_at > 0.0 && self.raise_at <= 1.0,
            "problems.raise_at",
            "must be above 0 and at most 1",
        )?;
        require(
            (1..=100_000).contains(&self.window),
            "problems.window",
            "must be between 1 and 100000",
        )?;
        require(
            (0.0..=1.0).contains(&self.easier),
            "problems.easier",
            "must be between 0 and 1",
        )?;
        require(
            (0.0..1.0).contains(&self.known_solutions),
            "problems.known_solutions",
            "must be at least 0 and less than 1",
        )
    }
}
