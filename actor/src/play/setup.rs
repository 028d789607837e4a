//! The settings that all games of an actor have in common, derived once from the run's configuration.

use config::RunConfig;
use games::{Game, StartError};
use search::{Settings, SettingsError};

use crate::settings::search_settings;

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
    /// Greatest number of random actions before a game of two players begins (`actor.random_plies`).
    pub random_plies: u32,
    /// Number of actions after which a game ends as a draw.
    pub max_actions: usize,
    /// Seed of the run.
    pub run_seed: u64,
    /// Name of the actor.
    pub actor: String,
}

/// Error: no game can be played with this configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The table `[game.rules]` is invalid.
    #[error("[game.rules] of {game}: {reason}")]
    Rules {
        /// Name of the game.
        game: &'static str,
        /// Reason.
        reason: String,
    },
    /// The options or the start position are invalid.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The start position is the end of the game.
    #[error("the game is over in its start position")]
    Over,
    /// The search settings are invalid.
    #[error(transparent)]
    Search(#[from] SettingsError),
    /// A setting cannot be written as JSON for the record.
    #[error("the settings cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl<G: Game> Setup<G> {
    /// Derives the settings from the configuration. `games` is the number of games played at once; they share the memory for
    /// search trees.
    ///
    /// # Errors
    /// [`SetupError`] naming the invalid part of the configuration.
    pub fn new(config: &RunConfig, actor: &str, games: usize) -> Result<Self, SetupError> {
        let rules: G::Rules = config
            .game
            .rules
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| SetupError::Rules {
                game: G::NAME,
                reason: error.message().into(),
            })?;
        let encoding = G::encoding(config.game.options)?;
        G::check(&rules, encoding)?;
        let start = G::start(&rules, None)?;
        // Computed once, before the first game.
        super::build::build();
        let mut actions = Vec::new();
        start.legal_actions(&mut actions);
        if start.outcome().is_some() || actions.is_empty() {
            return Err(SetupError::Over);
        }
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
            max_actions: config.search.max_actions as usize,
            run_seed: config.run.seed,
            actor: actor.into(),
        })
    }
}
