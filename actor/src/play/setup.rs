//! What all games of an actor have in common, worked out once from the run's configuration.

use config::{RunConfig, TemperatureStep};
use games::{Game, StartError};
use search::{Settings, SettingsError};

use crate::settings::search_settings;

/// What all games have in common.
#[derive(Clone, Debug)]
pub struct Setup<G: Game> {
    /// Every game begins here, unless it is a problem that is drawn.
    pub start: G,
    /// The rules.
    pub rules: G::Rules,
    /// How states are written for the network.
    pub encoding: G::Encoding,
    /// The number that stands for it.
    pub options: u32,
    /// Values in a row; `None` where rows differ in length.
    pub row_len: Option<usize>,
    /// The rules, for the record.
    pub rules_json: String,
    /// How games are searched.
    pub settings: Settings,
    /// The same, as configured, for the record.
    pub search_json: String,
    /// How moves are drawn.
    pub temperature: Vec<TemperatureStep>,
    /// Longer games end as draws.
    pub max_actions: usize,
    /// The run's seed.
    pub run_seed: u64,
    /// The actor's name.
    pub actor: String,
}

/// A configuration that no game can be played by.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The game's rules table.
    #[error("[game.rules] of {game}: {reason}")]
    Rules {
        /// The game.
        game: &'static str,
        /// What is wrong with the table.
        reason: String,
    },
    /// The game's options, or its start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is nothing to play.
    #[error("the game is over in its start position")]
    Over,
    /// The search settings.
    #[error(transparent)]
    Search(#[from] SettingsError),
    /// Something cannot be written as JSON.
    #[error("cannot be recorded: {0}")]
    Json(#[from] serde_json::Error),
}

impl<G: Game> Setup<G> {
    /// Works it out; `games` are played at once.
    ///
    /// # Errors
    /// [`SetupError`] naming what the game cannot be played by.
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
        let start = G::start(&rules, None)?;
        // Worked out once, before anything is played.
        super::record::build();
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
            temperature: config.search.temperature.clone(),
            max_actions: config.search.max_actions as usize,
            run_seed: config.run.seed,
            actor: actor.into(),
        })
    }
}
