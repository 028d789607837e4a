//! `[problems]`: what self-play is asked to solve, in games that are about problems.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of the curriculum. Games without problems (all but the generator game) do not look at them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ProblemsConfig {
    /// Level of difficulty that self-play begins with, at least 1 (the generator game: random moves that made the problem).
    pub level: u32,
    /// The level is raised no further than this.
    pub max_level: u32,
    /// The level is raised when this share of its last problems was solved, above 0 and at most 1.
    pub raise_at: f32,
    /// Problems of the level that the share is taken over. At least 1.
    pub window: u32,
    /// Share of the problems that are of lower levels, 0 to 1, so that these are not forgotten.
    pub easier: f32,
    /// Keep each game that was not solved a second time, as a solution of what it came to instead (true or false).
    pub hindsight: bool,
    /// Share of the games that are not played but recorded from a solution that was known beforehand, of any level up to
    /// `max_level`, 0 to less than 1: supervised learning for a warm start.
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
