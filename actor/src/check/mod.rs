//! Verifies game records.
//!
//! | module | contents |
//! |---|---|
//! | [`rules`] | checks every move, row and visit, and the end, against the rules; needs no network |
//! | [`search`](mod@search) | repeats the searches of a record with the same network |
//!
//! All random draws of a game are keyed by (run seed, game id, ply, purpose), and the record holds the seed and the id. So the
//! check finds any change to a field on which the game depends.

pub mod rules;
pub mod search;

use ::search::{GameKey, Settings};
use games::{Game, StartError};
use proto::{
    columns::{ColumnError, check_length},
    decisions::Decision,
    v1,
};

use crate::{GameId, play::setup::search_settings};

/// A contradiction in a record, or the reason why the record cannot be replayed at all.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Number of the position, from 0; `None` if the problem concerns the whole game.
    pub ply: Option<usize>,
    /// Field of the message.
    pub field: &'static str,
    /// The value found and the value expected, in words.
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

impl std::error::Error for Problem {}

impl Problem {
    /// Returns the reason why a record cannot be replayed.
    fn unplayable(field: &'static str, reason: impl std::fmt::Display) -> Self {
        Self {
            ply: None,
            field,
            problem: reason.to_string(),
        }
    }
}

impl From<ColumnError> for Problem {
    fn from(error: ColumnError) -> Self {
        Self::unplayable(error.column, error)
    }
}

/// Everything in a record that determines its game: start, search and key of the random draws.
#[derive(Clone, Debug)]
pub struct Premises<G: Game> {
    /// Start of the game.
    pub start: G,
    /// Encoding of the rows.
    pub encoding: G::Encoding,
    /// Search settings of the record.
    pub settings: Settings,
    /// Key of the random draws.
    pub key: GameKey,
}

impl<G: Game> Premises<G> {
    /// Reads the premises of the game out of its record.
    ///
    /// # Errors
    /// The record cannot be replayed.
    pub fn of(record: &v1::Game) -> Result<Self, Problem> {
        if record.game != G::name() {
            let reason = format!("the record is of {}, not of {}", record.game, G::name());
            return Err(Problem::unplayable("game", reason));
        }
        let id = GameId::from_bytes(&record.id).ok_or_else(|| {
            Problem::unplayable("id", format!("{} bytes, 16 are expected", record.id.len()))
        })?;
        let rules: G::Rules = serde_json::from_str(&record.rules_json)
            .map_err(|error| Problem::unplayable("rules_json", error))?;
        let recorded: Settings = serde_json::from_str(&record.search_json)
            .map_err(|error| Problem::unplayable("search_json", error))?;
        let mut settings =
            search_settings(&recorded, 1).map_err(|error| Problem::unplayable("search_json", error))?;
        let position = (!record.start.is_empty()).then_some(record.start.as_str());
        let wrong_start = |error: StartError| Problem::unplayable("start", error);
        if record.tree_bytes > 0 {
            settings.tree_bytes = usize::try_from(record.tree_bytes).unwrap_or(usize::MAX);
        }
        Ok(Self {
            start: G::start(&rules, position).map_err(wrong_start)?,
            encoding: G::encoding(&rules, record.options).map_err(wrong_start)?,
            settings,
            key: id.key(record.run_seed),
        })
    }
}

/// A position of a record.
#[derive(Clone, Copy, Debug)]
pub struct RecordedPosition<'a> {
    /// Number of actions played before.
    pub ply: usize,
    /// Action played in the position.
    pub action: u32,
    /// Player who acted: 0 for the first, 1 for the second.
    pub mover: u8,
    /// Row of the position.
    pub row: &'a [u32],
    /// Policy indices of the visited actions.
    pub visit_actions: &'a [u32],
    /// Visits of these actions.
    pub visits: &'a [u32],
    /// Value of the root after the search.
    pub root_value: f32,
    /// Other results of the search, if they are recorded.
    pub decision: Option<Decision<'a>>,
}

/// Iterates over the positions of a record.
///
/// # Errors
/// [`ColumnError`] if the lengths of the record's columns do not add up.
pub fn positions(record: &v1::Game) -> Result<impl Iterator<Item = RecordedPosition<'_>>, ColumnError> {
    let positions = record.actions.len();
    check_length("movers", record.movers.len(), positions)?;
    check_length("root_values", record.root_values.len(), positions)?;
    let (rows, policies) = (record.row_columns()?, record.policy_columns()?);
    let mut decisions = record.decision_columns()?;
    let numbers = record.actions.iter().zip(&record.movers).zip(&record.root_values);
    let columns = rows.zip(policies).zip(numbers).enumerate();
    Ok(columns.map(
        move |(ply, ((row, (visit_actions, visits)), ((&action, &mover), &root_value)))| RecordedPosition {
            ply,
            action,
            mover,
            row,
            visit_actions,
            visits,
            root_value,
            decision: decisions
                .as_mut()
                .and_then(Iterator::next)
                .filter(Decision::is_recorded),
        },
    ))
}
