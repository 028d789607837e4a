//! The settings that all games of an actor have in common, derived once from the run's configuration.

use anyhow::anyhow;
use config::RunConfig;
use games::Game;
use search::{Settings, SettingsError};

/// Memory limit of all trees of a process together, in bytes.
const ALL_TREES: usize = 1 << 30;
/// Least memory limit of one tree, in bytes.
const SMALLEST_TREE: usize = 1 << 20;
/// Largest memory limit of one tree, in bytes.
const LARGEST_TREE: usize = 256 << 20;

/// Settings that all games of an actor have in common.
#[derive(Clone, Debug)]
pub struct Setup<G: Game> {
    /// Start of every game that is not a drawn problem.
    pub start: G,
    /// Rules of the game.
    pub rules: G::Rules,
    /// Encoding of states as rows for the network.
    pub encoding: G::Encoding,
    /// Number of the encoding.
    pub options: u32,
    /// Number of values in a row. `None` if rows differ in length.
    pub row_len: Option<usize>,
    /// Rules of the game as JSON, for the record.
    pub rules_json: String,
    /// Search settings.
    pub settings: Settings,
    /// Search settings of the configuration as JSON, for the record.
    pub search_json: String,
    /// Maximum number of random actions before a game of two players begins (`actor.random_plies`).
    pub random_plies: u32,
    /// Seed of the run.
    pub run_seed: u64,
    /// Name of the actor.
    pub actor: String,
}

impl<G: Game> Setup<G> {
    /// Derives the settings from the configuration. `games` is the number of games played at once; they share the memory for
    /// search trees.
    ///
    /// # Errors
    /// The configuration is invalid; the error names its part.
    pub fn new(config: &RunConfig, actor: &str, games: usize) -> anyhow::Result<Self> {
        let rules = config.game.rules.clone().try_into();
        let rules: G::Rules = rules.map_err(|error: toml::de::Error| {
            anyhow!("[game.rules] of {}: {}", G::name(), error.message())
        })?;
        let encoding = G::encoding(&rules, config.game.options)?;
        G::check(&rules, encoding)?;
        let start = G::start(&rules, None)?;
        // Computed once, before the first game.
        super::record::build();
        Ok(Self {
            start,
            rules_json: serde_json::to_string(&rules)?,
            rules,
            encoding,
            options: config.game.options,
            row_len: G::layout(encoding).row_len(),
            settings: search_settings(&config.search, games)?,
            search_json: serde_json::to_string(&config.search)?,
            random_plies: config.actor.random_plies,
            run_seed: config.run.seed,
            actor: actor.into(),
        })
    }
}

/// Returns the settings with the memory limit of one of `games` trees.
///
/// # Errors
/// [`SettingsError`] naming the setting that is out of range.
pub fn search_settings(settings: &Settings, games: usize) -> Result<Settings, SettingsError> {
    settings.check()?;
    Ok(Settings {
        tree_bytes: (ALL_TREES / games.max(1)).clamp(SMALLEST_TREE, LARGEST_TREE),
        ..settings.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tree_gets_its_share_of_the_memory() {
        let share = |games| search_settings(&Settings::default(), games).unwrap().tree_bytes;
        assert_eq!(
            [share(1), share(64), share(100_000)],
            [256 << 20, 16 << 20, 1 << 20]
        );
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let wrong = Settings {
            leaves: 0,
            ..Settings::default()
        };
        assert_eq!(search_settings(&wrong, 1).unwrap_err().setting, "leaves");
    }
}
