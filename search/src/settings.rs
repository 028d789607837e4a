//! The settings of a search: [`Settings`].
//!
//! The type is the section `[search]` of `run.toml` as well, and the base of what players in matches and UCI options change.
//! The documentation of its fields is therefore written for users: the template of `run.toml` shows it.

use std::ops::RangeInclusive;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::completed_q::CompletedQ;

/// Settings of the tree search and of the choice of moves. The defaults are what self-play uses on a small machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Visits for each decision: passes through the tree from the decision node to a leaf. More play better and take
    /// proportionally longer. 1 to 4194304. With 'solver' a decision takes further ones if all of them went to proven losses.
    pub visits: u32,
    /// Choice among the actions of the decision node: 'puct' (the formula that is used everywhere below it), or 'gumbel' (up to
    /// 16 actions drawn by the network's policy share the visits by sequential halving, and the best one is played). The latter
    /// needs learner.policy_target = "completed-q", and ignores 'temperature' and 'leaves'. Open-ended searches, as in the
    /// studio and over UCI, always take 'puct'.
    pub root: Root,
    /// Weight of values against the network's policy, with root = "gumbel" and in learner.policy_target = "completed-q": the
    /// logit of an action gains q_scale · (50 + most visits of an action) · value / q_range. Larger values trust the search
    /// more. 0 or more.
    pub q_scale: f64,
    /// Number that differences of values are divided by in that formula, or their range over the position's actions if that is
    /// larger. 2, the range of all values, keeps a difference worth the same everywhere; a small number makes the best and the
    /// worst action of every position differ by about q_scale · (50 + visits), noise included. Above 0, at most 2.
    pub q_range: f64,
    /// Exploration constant 'c' of the PUCT formula V = (W + F) / (1 + N) + c · P · √ΣN / (1 + N). Larger values try more
    /// actions, smaller ones trust the best action so far. 0 or more.
    pub exploration: f32,
    /// First-play urgency F, the value an action has before its first visit: 'parent' (the parent's own evaluation), 'zero'
    /// (a draw) or 'reduction' (the parent's evaluation less first_play_reduction).
    pub first_play: FirstPlay,
    /// With first_play = "reduction": subtracted from F, times √(sum of the priors of the visited actions). 0 or more.
    pub first_play_reduction: f32,
    /// Leaves that one search requests at once, kept apart by virtual losses. 1 is serial UCT; more fill batches better and
    /// search a little worse. 1 to 4095.
    pub leaves: u32,
    /// Share of Dirichlet noise in the priors of the decision node, 0 to 1. Self-play needs it to discover moves; 0 switches
    /// it off. With root = "gumbel" there is no Dirichlet noise: any number above 0 draws the actions at random, 0 takes those
    /// with the largest priors.
    pub noise_fraction: f32,
    /// Parameter α of the Dirichlet noise for each action is this number divided by the number of legal actions
    /// (KataGo: 10.83). Above 0.
    pub noise_total_alpha: f32,
    /// Evaluate each leaf in a randomly drawn symmetry of the game (true or false). In the generator game, in canonical
    /// colours instead: positions that differ by a permutation of the colours 2 to 9 share one evaluation.
    pub random_symmetry: bool,
    /// Treatment of the subtree below the played action: 'gray' (nodes keep their evaluation and lose their visits), 'keep'
    /// (nodes keep both) or 'drop' (everything is searched anew).
    pub reuse: Reuse,
    /// Discount for each action, in one-player games: above 0, at most 1. 1 does not discount.
    pub discount: f32,
    /// Weight of the best visit in an action's value, in one-player games: 0 (the mean alone) to 1 (the maximum alone).
    pub max_share: f32,
    /// In one-player games: end a decision once the shortest solution is proven, and play the shortest solution known
    /// (true or false). In two-player games with 'solver': end a decision once its outcome is proven.
    pub stop_when_solved: bool,
    /// In two-player games: prove outcomes in the tree (true or false). A win by one action is never overlooked, a proven action
    /// is searched no further, a proven loss is not played while another action is open, and a proven decision plays the
    /// shortest win, else a draw, else the longest defence, which is also its recorded policy.
    pub solver: bool,
    /// Ask the game for the exact outcome of each new leaf, which then needs no evaluation (true or false; with 'solver' always
    /// true): wins by one action in every game, the last eight empty squares in Othello, wins within a turn in Paco Ŝako. A
    /// leaf in which the player to act can repeat the position for a draw (Paco Ŝako) is worth at least a draw.
    pub exact_leaves: bool,
    /// Steps of the temperature schedule, which draws moves from the visit counts. The first step whose 'until_action' lies
    /// ahead applies; after the last step the most visited action is played.
    pub temperature: Vec<TemperatureStep>,
    /// Number of actions after which a game ends as a draw. At least 1.
    pub max_actions: u32,
    /// Memory limit of the tree in bytes. A leaf beyond it is evaluated and backed up, but not stored, and
    /// `Counters::unstored` counts it. Not part of `run.toml`: whoever runs a search divides its memory among the trees.
    #[serde(skip)]
    pub tree_bytes: usize,
}

/// Choice among the actions of the decision node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// The PUCT formula, as at every other node.
    #[default]
    Puct,
    /// Candidates drawn without replacement, sequential halving, and the choice of the best ([`gumbel`](crate::gumbel)).
    Gumbel,
}

/// First-play urgency: the value of an action before its first visit, for the player to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstPlay {
    /// The parent's own evaluation.
    Parent,
    /// 0, a draw.
    Zero,
    /// The parent's own evaluation, less [`Settings::first_play_reduction`] times √(sum of the priors of the visited actions).
    /// The first visit of an action lifts the reduction.
    Reduction,
}

/// Treatment of the subtree below the played action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reuse {
    /// Nodes turn gray: they keep their evaluation and lose their visits.
    Gray,
    /// Nodes keep their evaluation and their visits.
    Keep,
    /// The subtree is dropped.
    Drop,
}

/// One step of the temperature schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TemperatureStep {
    /// Number of actions in the game at which this step ends.
    pub until_action: u32,
    /// Visits are raised to `1/temperature`. 0 plays the most visited action.
    pub temperature: f32,
}

/// Error: a setting outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("search setting {setting} {must}")]
pub struct SettingsError {
    /// Name of the field.
    pub setting: &'static str,
    /// Requirement that the value breaks.
    pub must: String,
}

impl Settings {
    /// Maximum number of leaves that one gather requests.
    pub const MAX_LEAVES: u32 = crate::tree::MAX_VIRTUAL_LOSSES;
    /// Maximum number of visits of one decision: beyond it, sums of values in single precision grow coarse.
    pub const MAX_VISITS: u32 = 1 << 22;

    /// Checks every range. [`Search::new`](crate::Search::new) does not, so call this where settings come in.
    ///
    /// # Errors
    /// [`SettingsError`] naming the first setting that is out of range.
    pub fn check(&self) -> Result<(), SettingsError> {
        let require = |holds, setting, must: &str| match holds {
            true => Ok(()),
            false => Err(SettingsError {
                setting,
                must: must.into(),
            }),
        };
        let within = |setting, value: f64, range: RangeInclusive<f64>| {
            let must = format!("must be between {} and {}", range.start(), range.end());
            require(range.contains(&value), setting, &must)
        };
        let not_negative = |setting, value: f64| {
            let holds = value >= 0.0 && value.is_finite();
            require(holds, setting, "must not be negative")
        };
        let share = |setting, value: f32| within(setting, value.into(), 0.0..=1.0);
        require(self.visits >= 1, "visits", "must be at least 1")?;
        require(
            self.visits <= Self::MAX_VISITS,
            "visits",
            "must be at most 4194304",
        )?;
        not_negative("q_scale", self.q_scale)?;
        require(
            self.q_range > 0.0 && self.q_range <= 2.0,
            "q_range",
            "must be above 0 and at most 2",
        )?;
        not_negative("exploration", self.exploration.into())?;
        not_negative("first_play_reduction", self.first_play_reduction.into())?;
        within("leaves", self.leaves.into(), 1.0..=Self::MAX_LEAVES.into())?;
        share("noise_fraction", self.noise_fraction)?;
        require(
            self.noise_total_alpha > 0.0 && self.noise_total_alpha.is_finite(),
            "noise_total_alpha",
            "must be positive",
        )?;
        require(
            self.discount > 0.0 && self.discount <= 1.0,
            "discount",
            "must be above 0 and at most 1",
        )?;
        share("max_share", self.max_share)?;
        require(self.max_actions >= 1, "max_actions", "must be at least 1")?;
        for step in &self.temperature {
            not_negative("temperature", step.temperature.into())?;
        }
        require(
            self.temperature.is_sorted_by_key(|step| step.until_action),
            "temperature",
            "must have its steps in ascending order of until_action",
        )
    }

    /// Returns the strength with which values change a policy.
    pub fn completed_q(&self) -> CompletedQ {
        CompletedQ {
            scale: self.q_scale,
            range: self.q_range,
        }
    }

    /// Returns the temperature of the move after `played` actions: that of the first step still ahead, 0 after the last step.
    ///
    /// ```
    /// use search::{Settings, TemperatureStep};
    ///
    /// let opening = TemperatureStep { until_action: 30, temperature: 1.0 };
    /// let settings = Settings { temperature: vec![opening], ..Settings::default() };
    /// assert_eq!(settings.temperature_after(29), 1.0);
    /// assert_eq!(settings.temperature_after(30), 0.0);
    /// ```
    pub fn temperature_after(&self, played: usize) -> f32 {
        self.temperature
            .iter()
            .find(|step| played < step.until_action as usize)
            .map_or(0.0, |step| step.temperature)
    }
}

impl Default for Settings {
    fn default() -> Self {
        let step = |until_action, temperature| TemperatureStep {
            until_action,
            temperature,
        };
        Self {
            visits: 100,
            root: Root::Puct,
            q_scale: 0.3,
            q_range: 2.0,
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
            solver: false,
            exact_leaves: false,
            temperature: vec![step(30, 1.0), step(100_000, 0.25)],
            max_actions: 1_000,
            tree_bytes: 256 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_settings_are_in_range() {
        assert_eq!(Settings::default().check(), Ok(()));
    }

    #[test]
    fn check_names_the_setting_that_is_out_of_range() {
        type Change = fn(&mut Settings);
        let wrong: [(&str, Change); 17] = [
            ("visits", |s| s.visits = 0),
            ("visits", |s| s.visits = u32::MAX),
            ("q_scale", |s| s.q_scale = -0.1),
            ("q_scale", |s| s.q_scale = f64::INFINITY),
            ("q_range", |s| s.q_range = 0.0),
            ("q_range", |s| s.q_range = 2.5),
            ("exploration", |s| s.exploration = f32::NAN),
            ("first_play_reduction", |s| s.first_play_reduction = -0.1),
            ("leaves", |s| s.leaves = 0),
            ("leaves", |s| s.leaves = 4096),
            ("noise_fraction", |s| s.noise_fraction = 1.5),
            ("noise_total_alpha", |s| s.noise_total_alpha = 0.0),
            ("discount", |s| s.discount = 0.0),
            ("max_share", |s| s.max_share = 1.5),
            ("max_actions", |s| s.max_actions = 0),
            ("temperature", |s| s.temperature.reverse()),
            ("temperature", |s| s.temperature[0].temperature = -1.0),
        ];
        for (setting, change) in wrong {
            let mut settings = Settings::default();
            change(&mut settings);
            assert_eq!(settings.check().map_err(|error| error.setting), Err(setting));
        }
    }

    #[test]
    fn first_step_still_ahead_gives_the_temperature() {
        let step = |until_action, temperature| TemperatureStep {
            until_action,
            temperature,
        };
        let mut settings = Settings {
            temperature: vec![step(2, 1.0), step(2, 9.0), step(5, 0.25)],
            ..Settings::default()
        };
        let drawn: Vec<f32> = (0..7).map(|played| settings.temperature_after(played)).collect();
        assert_eq!(drawn, [1.0, 1.0, 0.25, 0.25, 0.25, 0.0, 0.0]);
        settings.temperature.clear();
        assert_eq!(settings.temperature_after(0), 0.0);
    }
}
