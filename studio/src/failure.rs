//! [`Failure`]: errors as pages, or as JSON where a script asked.

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use games::{StartError, registry::UnknownGame};
use maud::html;

use crate::page;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The requested thing does not exist.
    #[error("{0}")]
    Missing(String),
    /// The request has a part that cannot be used.
    #[error("{0}")]
    BadRequest(String),
    /// Another part of the run does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// Too many requests of this kind are at work.
    #[error("{0}")]
    Busy(String),
    /// A part of the studio failed, for this reason with all its causes.
    #[error("{0}")]
    Inside(String),
}

impl Failure {
    /// Status of the reply.
    fn status(&self) -> StatusCode {
        match self {
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unavailable(_) => StatusCode::BAD_GATEWAY,
            Self::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Inside(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A failure in the reply to a script: a JSON object `{"error": …}`.
#[derive(Debug)]
pub struct InJson(Failure);

impl<E: Into<Failure>> From<E> for InJson {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for InJson {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.0.to_string() });
        (self.0.status(), axum::Json(body)).into_response()
    }
}

impl From<UnknownGame> for Failure {
    fn from(error: UnknownGame) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Inside(format!("{error:#}"))
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::Inside(error) = &self {
            tracing::error!("{error}");
        }
        let status = self.status();
        let body = page::bare(
            "Not here",
            &html! {
                h1 { (status.canonical_reason().unwrap_or("Error")) }
                p { (self.to_string()) }
                p { a href="/" { "Overview" } }
            },
        );
        (status, body).into_response()
    }
}
