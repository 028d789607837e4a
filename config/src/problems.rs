//! `[problems]`: the curriculum of games that consist of problems to solve.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError,
    error::{at_least, require, within},
};

/// Settings of the curriculum. Only the generator game uses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct ProblemsConfig {
    /// Level of difficulty at the start of self-play, at least 1 (generator game: number of random moves that made the
    /// problem).
    pub level: u32,
    /// Highest level, at least `level`.
    pub max_level: u32,
    /// Number of latest problems of the level that decide: the level is raised when 70 % of them are solved. 1 to 100000.
    pub window: u32,
    /// Share of games recorded from a known solution, of any level up to `max_level`, instead of played by the search. At
    /// least 0, below 1. Such games are supervised examples for a warm start.
    pub known_solutions: f32,
}

impl Default for ProblemsConfig {
    fn default() -> Self {
        Self {
            level: 1,
            max_level: 16,
            window: 100,
            known_solutions: 0.5,
        }
    }
}

impl ProblemsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        at_least("problems.level", self.level, 1)?;
        require(
            self.max_level >= self.level,
            "problems.max_level",
            "must be at least problems.level",
        )?;
        within("problems.window", self.window, 1..=100_000)?;
        require(
            (0.0..1.0).contains(&self.known_solutions),
            "problems.known_solutions",
            "must be at least 0 and less than 1",
        )
    }
}
