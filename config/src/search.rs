//! `[search]`: how an actor searches and chooses moves.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{ConfigError, load::require};

/// Settings of UCT and of the choice of moves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct SearchConfig {
    /// Traversals for each decision. At least 1.
    pub visits: u32,
    /// Exploration constant `c` of `V = W/(1+N) + c·P·√ΣN/(1+N)`. 0 or more.
    pub exploration: f32,
    /// First-play urgency, the Q of an action without visits: `parent` (the parent's own evaluation), `zero` (a draw)
    /// or `reduction` (the parent's evaluation less a reduction).
    pub first_play: FirstPlay,
    /// With `first_play = "reduction"`: subtracted from the parent's value, times √(prior mass visited).
    pub first_play_reduction: f32,
    /// Leaves that one search hands out at once, kept apart by virtual losses: 1 (serial UCT) to 4095.
    pub leaves: u32,
    /// Share of Dirichlet noise in the decision node's priors, 0 to 1; 0 switches it off.
    pub noise_fraction: f32,
    /// The noise's α is this divided by the number of legal actions (KataGo's rule; 10.83).
    pub noise_total_alpha: f32,
    /// Evaluate each leaf in a randomly drawn symmetry (true or false).
    pub random_symmetry: bool,
    /// What becomes of the subtree below the action played: `gray` (nodes keep their evaluation and lose their
    /// statistics), `keep` (they keep both) or `drop`.
    pub reuse: Reuse,
    /// Discount for each action of a one-player game: above 0, at most 1.
    pub discount: f32,
    /// Share of the best traversal in an action's value, in one-player games: 0 (the mean alone) to 1.
    pub max_share: f32,
    /// In one-player games: end a decision once the shortest solution is proven, and follow the shortest solution known.
    pub stop_when_solved: bool,
    /// How moves are drawn from the visit counts: the first step whose `until_action` is not reached decides.
    /// After the last step the most visited action is played.
    pub temperature: Vec<TemperatureStep>,
    /// A game longer than this many actions is ended as a draw. At least 1.
    pub max_actions: u32,
}

/// Q of an action without visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstPlay {
    /// The parent's own evaluation (the seed's default).
    Parent,
    /// 0, a draw.
    Zero,
    /// The parent's evaluation less a reduction.
    Reduction,
}

/// What becomes of the subtree below the action played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// Nodes keep their evaluation and lose their statistics (the seed's subtree re-use).
    Gray,
    /// Nodes keep both.
    Keep,
    /// Everything is dropped.
    Drop,
}

/// One step of the temperature schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureStep {
    /// Number of actions of the game before this step ends.
    pub until_action: u32,
    /// Visits are raised to `1/temperature`. 0 plays the most visited action.
    pub temperature: f32,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self {
            visits: 100,
            exploration: 1.25,
            first_play: FirstPlay::Parent,
            first_play_reduction: 0.2,
            leaves: 4,
            noise_fraction: 0.25,
            noise_total_alpha: 10.83,
            random_symmetry: true,
            reuse: Reuse::Gray,
            discount: 1.0,
            max_share: 0.0,
            stop_when_solved: false,
            temperature: vec![
                TemperatureStep {
                    until_action: 30,
                    temperature: 1.0,
                },
                TemperatureStep {
                    until_action: 100_000,
                    temperature: 0.25,
                },
            ],
            max_actions: 1_000,
        }
    }
}

impl SearchConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        require(self.visits >= 1, "search.visits", "must be at least 1")?;
        require(
            self.exploration >= 0.0 && self.exploration.is_finite(),
            "search.exploration",
            "must not be negative",
        )?;
        require(
            (1..=4095).contains(&self.leaves),
            "search.leaves",
            "must be between 1 and 4095",
        )?;
        require(
            (0.0..=1.0).contains(&self.noise_fraction),
            "search.noise_fraction",
            "must be between 0 and 1",
        )?;
        require(
            self.noise_total_alpha > 0.0,
            "search.noise_total_alpha",
            "must be positive",
        )?;
        require(
            self.discount > 0.0 && self.discount <= 1.0,
            "search.discount",
            "must be above 0 and at most 1",
        )?;
        require(
            (0.0..=1.0).contains(&self.max_share),
            "search.max_share",
            "must be between 0 and 1",
        )?;
        require(self.max_actions >= 1, "search.max_actions", "must be at least 1")?;
        require(
            self.temperature
                .iter()
                .all(|step| step.temperature >= 0.0 && step.temperature.is_finite()),
            "search.temperature",
            "temperatures must not be negative",
        )?;
        require(
            self.temperature.is_sorted_by_key(|step| step.until_action),
            "search.temperature",
            "steps must be in ascending order of until_action",
        )
    }
}
