//! `[rating]`: matches between new checkpoints and the best one.

use std::path::PathBuf;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError, Provider,
    error::{require, within},
};

/// Settings of the rating role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct RatingConfig {
    /// Start the role with `minuet up` (true or false). It runs at low priority.
    pub enabled: bool,
    /// Largest share of the machine's processor time that the role takes, above 0, at most 1; `minuet up --rating` is short for 1. Below 1
    /// a match takes ten minutes at most.
    pub share: f64,
    /// Elo difference of the hypothesis H0 of the sequential test (SPRT): a candidate is rejected when H0, that it is this much
    /// stronger than the best checkpoint, is accepted. Each verdict is wrong with a probability of at most 5 %. -1000 to 1000.
    pub elo0: f64,
    /// Elo difference of the hypothesis H1: a candidate becomes the best checkpoint when H1 is accepted. Above elo0, at most
    /// 1000.
    pub elo1: f64,
    /// Maximum number of games in a match; an undecided match keeps the best checkpoint. An even number, 2 to 100000.
    pub max_games: u64,
    /// Search visits per decision, for both sides. 1 to 1000000.
    pub visits: u32,
    /// Threads that play games, 1 to 1024.
    pub threads: usize,
    /// Execution provider for networks loaded in the role's own process; the values are those of inference.provider.
    pub provider: Provider,
    /// Evaluate both networks on the inference server instead of loading them (true or false).
    pub remote: bool,
    /// Number of latest matches whose games are kept; 0 keeps all. Ratings do not need the games.
    pub keep_matches: usize,
    /// Folder of the matches and the ratings; relative to the run's folder.
    pub folder: PathBuf,
    /// Address of the Prometheus metrics page; empty: none.
    pub metrics: String,
    /// Address of the health service; empty: none.
    pub health: String,
}

impl Default for RatingConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            share: 0.03,
            elo0: 0.0,
            elo1: 40.0,
            max_games: 600,
            visits: 32,
            threads: 1,
            // ONNX Runtime in f32 loads a checkpoint without compiling or measuring it, which takes other providers seconds.
            provider: Provider::Cpu,
            remote: false,
            keep_matches: 100,
            folder: "rating".into(),
            metrics: String::new(),
            health: String::new(),
        }
    }
}

impl RatingConfig {
    /// True if matches must leave processor time to the other roles: they are short then.
    pub fn is_limited(&self) -> bool {
        self.share < 1.0
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("rating.elo0", self.elo0, -1000.0..=1000.0)?;
        require(
            self.elo1 > self.elo0 && self.elo1 <= 1000.0,
            "rating.elo1",
            "must be above rating.elo0 and at most 1000",
        )?;
        require(
            (2..=100_000).contains(&self.max_games) && self.max_games.is_multiple_of(2),
            "rating.max_games",
            "must be an even number between 2 and 100000: every opening is played with both colours",
        )?;
        require(
            self.share > 0.0 && self.share <= 1.0,
            "rating.share",
            "must be above 0 and at most 1",
        )?;
        within("rating.visits", self.visits, 1..=1_000_000)?;
        within("rating.threads", self.threads, 1..=1024)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn check_names_the_key_of_a_value_out_of_range() {
        for (text, key) in [
            ("elo0 = nan", "rating.elo0"),
            ("elo0 = 40.0", "rating.elo1"),
            ("max_games = 7", "rating.max_games"),
            ("visits = 0", "rating.visits"),
            ("threads = 0", "rating.threads"),
            ("share = 0.0", "rating.share"),
            ("share = 1.5", "rating.share"),
        ] {
            let message = parse(&format!("[rating]\n{text}\n")).unwrap_err().to_string();
            assert!(message.contains(&format!("`{key}`")), "{text}: {message}");
        }
        let run = parse("[rating]\nenabled = false\n").unwrap();
        assert!(!run.rating.enabled);
    }
}
