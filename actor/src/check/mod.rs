//! Is a record what its game, its seed and its model say?
//!
//! | module | what it is for |
//! |---|---|
//! | [`rules`] | the record against the rules: every move, row, visit and the end; needs no network |
//! | [`search`](mod@search) | the record against its search, played again with the same network |
//!
//! All that is random in a game is keyed by (run seed, game id, ply, purpose), and both the seed and the id are in the
//! record. So a record that was altered, in whatever field that the game depends on, is found out.

pub mod rules;
pub mod search;

use ::search::{GameKey, Settings, SettingsError};
use config::SearchConfig;
use games::{Game, StartError};
use proto::{
    columns::{ColumnError, check_length},
    v1,
};

use crate::{GameId, settings::search_settings};

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// At which position, counted from 0; none where it concerns the whole game.
    pub ply: Option<usize>,
    /// The message's field.
    pub field: &'static str,
    /// What was found, and what should be there.
    pub problem: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ply {
            Some(ply) => write!(out, "position {ply}, {}: {}", self.field, self.problem),
            None => write!(out, "{}: {}", self.field, self.problem),
        }
    }
}

/// A record that cannot be played again at all.
#[derive(Debug, thiserror::Error)]
pub enum Unplayable {
    /// It is of another game.
    #[error("the record is of {found}, not of {wanted}")]
    Game {
        /// The record's game.
        found: String,
        /// The game it was to be checked as.
        wanted: &'static str,
    },
    /// Its id is none.
    #[error("the id has {0} bytes, 16 are expected")]
    Id(usize),
    /// Its rules are not those of this build's game.
    #[error("rules_json: {0}")]
    Rules(serde_json::Error),
    /// Its representation or start position does not exist.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The lengths of its columns do not add up.
    #[error(transparent)]
    Columns(#[from] ColumnError),
    /// Its search settings are not those of this build's search.
    #[error("search_json: {0}")]
    Search(serde_json::Error),
    /// A search setting is out of its range.
    #[error("search_json: {0}")]
    Settings(#[from] SettingsError),
}

/// What a record says about how it was played.
#[derive(Clone, Debug)]
pub struct Premises<G: Game> {
    /// Where it began.
    pub start: G,
    /// Its representation.
    pub encoding: G::Encoding,
    /// How it was searched, as configured.
    pub config: SearchConfig,
    /// The same for the search.
    pub settings: Settings,
    /// What its draws are keyed by.
    pub key: GameKey,
}

impl<G: Game> Premises<G> {
    /// Reads them out of a record.
    ///
    /// # Errors
    /// [`Unplayable`]
    pub fn of(record: &v1::Game) -> Result<Self, Unplayable> {
        if record.game != G::NAME {
            return Err(Unplayable::Game {
                found: record.game.clone(),
                wanted: G::NAME,
            });
        }
        let id = GameId::from_bytes(&record.id).ok_or(Unplayable::Id(record.id.len()))?;
        let rules: G::Rules = serde_json::from_str(&record.rules_json).map_err(Unplayable::Rules)?;
        let config: SearchConfig = serde_json::from_str(&record.search_json).map_err(Unplayable::Search)?;
        let position = (!record.start.is_empty()).then_some(record.start.as_str());
        let mut settings = search_settings(&config, 1)?;
        if record.tree_bytes > 0 {
            settings.tree_bytes = usize::try_from(record.tree_bytes).unwrap_or(usize::MAX);
        }
        Ok(Self {
            start: G::start(&rules, position)?,
            encoding: G::encoding(record.options)?,
            config,
            settings,
            key: id.key(record.run_seed),
        })
    }
}

/// One position of a record.
#[derive(Clone, Copy, Debug)]
pub struct Position<'a> {
    /// Actions played before it.
    pub ply: usize,
    /// The action played in it.
    pub action: u32,
    /// 0 where the first player acted, 1 where the second did.
    pub mover: u8,
    /// Its row.
    pub row: &'a [u32],
    /// Policy indices that were visited.
    pub visit_actions: &'a [u32],
    /// Their visits.
    pub visits: &'a [u32],
    /// The root's value after the search.
    pub root_value: f32,
}

/// Iterates over the positions of a record.
///
/// # Errors
/// [`ColumnError`] if the lengths of the record's columns do not add up.
pub fn positions(record: &v1::Game) -> Result<impl Iterator<Item = Position<'_>>, ColumnError> {
    let positions = record.actions.len();
    check_length("movers", record.movers.len(), positions)?;
    check_length("root_values", record.root_values.len(), positions)?;
    let (rows, policies) = (record.row_columns()?, record.policy_columns()?);
    let numbers = record.actions.iter().zip(&record.movers).zip(&record.root_values);
    let columns = rows.zip(policies).zip(numbers).enumerate();
    Ok(columns.map(
        |(ply, ((row, (visit_actions, visits)), ((&action, &mover), &root_value)))| Position {
            ply,
            action,
            mover,
            row,
            visit_actions,
            visits,
            root_value,
        },
    ))
}
