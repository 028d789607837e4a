//! [`Refusal`]: requests of a page that a table or the list of tables refuses.

use axum::response::{IntoResponse, Response};
use games::registry::UnknownGame;

use crate::failure::Failure;

/// Error: a table refuses a request.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No game has this name.
    #[error(transparent)]
    Game(#[from] UnknownGame),
    /// No table has this id.
    #[error("This table is closed. Start a new game.")]
    NoTable,
    /// The opponent is not in the list.
    #[error("There is no opponent `{0}` for this game.")]
    Opponent(String),
    /// The position cannot be used.
    #[error(transparent)]
    Position(#[from] games::StartError),
    /// The move is not possible.
    #[error("{0}")]
    Turn(String),
    /// The network that analyses cannot be used.
    #[error("The position cannot be searched: {0}.")]
    Advisor(String),
    /// There is nothing to take back.
    #[error("There is nothing of yours to take back.")]
    Nothing,
    /// A part of the request cannot be used.
    #[error("{0}")]
    Request(String),
    /// A limit is reached.
    #[error("{0}")]
    Busy(&'static str),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoTable => Self::Missing(refusal.to_string()),
            Refusal::Busy(_) => Self::Busy(refusal.to_string()),
            _ => Self::BadRequest(refusal.to_string()),
        }
    }
}

/// Refusals answer scripts, so they are JSON.
impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        Failure::from(self).as_json()
    }
}
