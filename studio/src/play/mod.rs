//! Play and analysis: a person plays any game against any checkpoint, in the browser.
//!
//! The server knows the rules; the page shows what it is sent and says which offer was chosen. Searches run in this process
//! or on the run's inference server, within the limits of [`tables::Limits`].
//!
//! | module | contents |
//! |---|---|
//! | [`tables`] | parts that all tables share: networks, permits, the list of tables |
//! | [`opponents`] | checkpoints, shipped networks and other players to choose from |
//! | [`table`] | one game under way: commands, moves and taking back, when to search |
//! | `jobs` | the searches of a table: the opponent's move, the analysis, the exact solver |
//! | `review` | where the value of a finished game fell, and what was better |
//! | [`offers`] | legal moves as clicks and names |
//! | `threat` | the win that the opponent would have next |
//! | `view` | a table as pieces of HTML |
//! | `page` | the page around them |
//! | `stream` | events that keep the page current |

mod jobs;
pub mod offers;
pub mod opponents;
mod page;
mod review;
mod stream;
pub mod table;
pub mod tables;
mod threat;
mod view;

use std::sync::Arc;

use anyhow::Context as _;
use arena::matches::problems;
use axum::{
    Json, Router,
    extract::{Path, State, rejection::JsonRejection},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use games::{
    Action, Player,
    erased::{AnyGame, AnyState},
    registry,
};
use serde::Deserialize;
use serde_json::json;

use self::{
    table::{Command, Seats, Table},
    tables::Tables,
};
use crate::{
    app::App,
    failure::{Failure, InJson},
};

/// A game to begin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewGame {
    /// Name of the game.
    pub game: String,
    /// Id of the opponent. `None`: the first of the list.
    #[serde(default)]
    pub opponent: Option<String>,
    /// Visits of the opponent for each decision.
    #[serde(default = "usual_visits")]
    pub visits: u32,
    /// Side of the person: `first`, `second`, `both`, `none`, or as the game calls it.
    #[serde(default = "usual_side")]
    pub side: String,
    /// Position as text. `None`: the usual start, or a drawn problem.
    #[serde(default)]
    pub start: Option<String>,
    /// Level of the drawn problem.
    #[serde(default = "usual_level")]
    pub level: u32,
    /// Actions that were played before.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Seed of all draws. `None`: another one for each game.
    #[serde(default)]
    pub seed: Option<u64>,
}

fn usual_visits() -> u32 {
    100
}

fn usual_side() -> String {
    "first".into()
}

fn usual_level() -> u32 {
    3
}

/// Routes of play.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/play", get(page::show))
        .route("/play/tables", post(begin))
        .route("/play/tables/{id}", post(execute))
        .route("/play/tables/{id}/events", get(stream::events))
        .route("/play/tables/{id}/record", get(record))
}

async fn begin(
    State(app): State<App>,
    new: Result<Json<NewGame>, JsonRejection>,
) -> Result<Response, InJson> {
    let Json(new) = new.map_err(|error| Failure::BadRequest(error.body_text()))?;
    let id = open_table(&app.tables, new).await?;
    Ok(Json(json!({ "table": id })).into_response())
}

async fn execute(
    State(app): State<App>,
    Path(id): Path<String>,
    command: Result<Json<Command>, JsonRejection>,
) -> Result<Response, InJson> {
    let Json(command) = command.map_err(|error| Failure::BadRequest(error.body_text()))?;
    app.tables.table(&id)?.execute(command)?;
    Ok(Json(json!({})).into_response())
}

/// The game so far, as a line that `minuet rules` answers.
async fn record(State(app): State<App>, Path(id): Path<String>) -> Result<Response, InJson> {
    let record = app.tables.table(&id)?.record();
    Ok(Json(record).into_response())
}

/// Opens a table and returns its id.
///
/// # Errors
/// [`Failure`] if the game, the opponent, the side or the position cannot be used.
pub async fn open_table(tables: &Arc<Tables>, new: NewGame) -> Result<String, Failure> {
    let game = registry::find(&new.game)?;
    if !(1..=tables.limits.visits).contains(&new.visits) {
        let most = tables.limits.visits;
        return Err(Failure::BadRequest(format!(
            "The number of visits is from 1 to {most}."
        )));
    }
    let known = opponents::opponents(tables, game).await;
    let chosen = match &new.opponent {
        None => known.first(),
        Some(id) => known.iter().find(|opponent| opponent.written == *id),
    };
    let missing = || {
        let wanted = new.opponent.as_deref().unwrap_or_default();
        Failure::BadRequest(format!("There is no opponent `{wanted}` for this game."))
    };
    let chosen = chosen.ok_or_else(missing)?;
    let mut advisors = std::iter::once(chosen).chain(&known);
    let advisor = advisors.find(|player| opponents::searches(player));
    let seed = new.seed.unwrap_or_else(rand::random);
    let begin = start(game, new.start.as_deref(), new.level, seed)?;
    let seats = Seats {
        people: people(game, &new.side)?,
        opponent: opponents::with_visits(chosen, new.visits)?,
        advisor: opponents::with_visits(advisor.unwrap_or(chosen), new.visits)?,
        seed,
    };
    // A drawn problem is kept as text, so that its record tells it.
    let text = new.start.or_else(|| (game.levels > 0).then(|| begin.position()));
    let table = Table::new(Arc::clone(tables), seats, begin, text);
    table.replay(&new.actions)?;
    tables.add(table)
}

/// Returns the state that a text describes, or a drawn problem of a level, or the usual start.
fn start(game: &AnyGame, text: Option<&str>, level: u32, seed: u64) -> Result<Box<dyn AnyState>, Failure> {
    let variant = game
        .variant(&game.people_rules(), None)
        .context("the game has no rules for people")?;
    let level = level.clamp(1, game.levels.max(1));
    let drawn = match text {
        Some(_) => None,
        None => problems::draw(&*variant, level, seed),
    };
    match drawn {
        Some(problem) => Ok(problem),
        None => Ok(variant.start(text)?),
    }
}

fn people(game: &AnyGame, side: &str) -> Result<Vec<Player>, Failure> {
    Ok(match side {
        _ if game.players == 1 && side != "none" => vec![Player::First],
        "both" => vec![Player::First, Player::Second],
        "none" => Vec::new(),
        _ => {
            vec![game.player_named(side).ok_or_else(|| {
                Failure::BadRequest(format!("Unknown side `{side}`: first, second, both or none."))
            })?]
        }
    })
}

/// A state of a game by the rules of people, for tests.
#[cfg(test)]
pub(crate) fn state(game: &str, position: Option<&str>) -> Box<dyn AnyState> {
    start(registry::find(game).unwrap(), position, 1, 0).unwrap()
}
