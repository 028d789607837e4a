//! Why one request is not answered. Its neighbours are.

use std::time::Duration;

use games::RowError;
use proto::v1::{EvaluateReply, RequestError};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// When to ask again for a model that could not be loaded.
const LOADING: Duration = Duration::from_secs(1);

/// Why one request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No model has been loaded yet.
    #[error("no model is loaded yet; try again")]
    NoModel,
    /// Neither the label nor the version is served here.
    #[error("no model `{0}` is served here")]
    UnknownModel(String),
    /// The model that was named is not loaded, and requests may not cause that here.
    #[error("the model `{0}` is not loaded; an administrator can load it")]
    NotLoaded(String),
    /// The model that was named cannot be used.
    #[error("the model `{name}` cannot be served: {reason}")]
    BadModel {
        /// What was asked for.
        name: String,
        /// Why not.
        reason: String,
    },
    /// There is no memory for the model that was named.
    #[error("the model `{name}` cannot be loaded now: {reason}")]
    NoMemory {
        /// What was asked for.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Too many requests wait for models being loaded.
    #[error("too many requests wait for models being loaded; try again later")]
    LoadsWait,
    /// The store of models cannot be read.
    #[error("the store of models cannot be read: {0}")]
    StoreFails(String),
    /// The default model is never unloaded.
    #[error("`{0}` is this server's default, which stays loaded")]
    Pinned(String),
    /// A request without positions.
    #[error("the request has no positions (legal_counts is empty)")]
    Empty,
    /// More positions than one request may hold.
    #[error("{positions} positions in one request, at most {most} are taken")]
    TooLarge {
        /// Positions there were.
        positions: usize,
        /// The limit.
        most: usize,
    },
    /// The rows of all positions do not add up.
    #[error("{found} indices, the rows of {positions} positions have {expected}")]
    Indices {
        /// Indices there were.
        found: usize,
        /// Indices there must be.
        expected: usize,
        /// Positions, by `legal_counts`.
        positions: usize,
    },
    /// Row lengths are given, but not one for each position.
    #[error(
        "{found} row lengths for {positions} positions; give one for each, or leave them out where all rows have one length"
    )]
    RowLengths {
        /// Lengths there were.
        found: usize,
        /// Positions, by `legal_counts`.
        positions: usize,
    },
    /// The counts of legal actions do not add up.
    #[error("{found} legal actions, but legal_counts add up to {expected}")]
    LegalCounts {
        /// Actions there were.
        found: usize,
        /// What the counts add up to.
        expected: u64,
    },
    /// A row that means nothing to the model.
    #[error("position {position}: {error}")]
    Row {
        /// The offending position.
        position: usize,
        /// What is wrong.
        error: RowError,
    },
    /// A position without legal actions: the game is over there, and nothing to ask.
    #[error("position {position}: no legal actions")]
    NoLegalActions {
        /// The offending position.
        position: usize,
    },
    /// An action the model does not know.
    #[error("position {position}: action {action} is not below {actions}")]
    Action {
        /// The offending position.
        position: usize,
        /// The action.
        action: u32,
        /// Size of the model's policy.
        actions: u32,
    },
    /// An action that is named twice: its prior would be counted twice.
    #[error("position {position}: action {action} is named twice")]
    Duplicate {
        /// The offending position.
        position: usize,
        /// The action.
        action: u32,
    },
    /// Too much is waiting.
    #[error("the queue is full: {waiting} positions wait, {most} may; try again in {retry_after_ms} ms")]
    QueueFull {
        /// Positions that wait.
        waiting: usize,
        /// The limit.
        most: usize,
        /// When what waits now will be done.
        retry_after_ms: u64,
    },
    /// Its deadline passed before it was computed.
    #[error("the deadline passed before it was this request's turn")]
    Late,
    /// The model gave infinities or NaN.
    #[error("position {position}: the model's answer is not finite")]
    NotFinite {
        /// The offending position.
        position: usize,
    },
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// The process has been asked to stop.
    #[error("the server is stopping; connect again")]
    Stopping,
}

impl Refusal {
    /// The gRPC status code.
    pub fn code(&self) -> Code {
        match self {
            Self::NoModel | Self::Stopping | Self::StoreFails(_) => Code::Unavailable,
            Self::UnknownModel(_) | Self::NotLoaded(_) => Code::NotFound,
            Self::BadModel { .. } | Self::Pinned(_) => Code::FailedPrecondition,
            Self::Late => Code::DeadlineExceeded,
            Self::Empty
            | Self::TooLarge { .. }
            | Self::Indices { .. }
            | Self::RowLengths { .. }
            | Self::LegalCounts { .. }
            | Self::Row { .. }
            | Self::NoLegalActions { .. }
            | Self::Action { .. }
            | Self::Duplicate { .. } => Code::InvalidArgument,
            Self::QueueFull { .. } | Self::NoMemory { .. } | Self::LoadsWait => Code::ResourceExhausted,
            Self::NotFinite { .. } | Self::Device(_) => Code::Internal,
        }
    }

    /// The offending position, where there is one.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Row { position, .. }
            | Self::NoLegalActions { position }
            | Self::Action { position, .. }
            | Self::Duplicate { position, .. }
            | Self::NotFinite { position } => Some(*position),
            _ => None,
        }
    }

    /// When it is worth asking again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::QueueFull { retry_after_ms, .. } => Some(Duration::from_millis(*retry_after_ms)),
            Self::NoMemory { .. } | Self::LoadsWait => Some(LOADING),
            _ => None,
        }
    }

    /// The reply that says so on a stream.
    pub fn in_band(&self, id: u64) -> EvaluateReply {
        EvaluateReply {
            id,
            error: Some(RequestError {
                code: self.code() as i32,
                message: self.to_string(),
                position: self.position().and_then(|position| u32::try_from(position).ok()),
                retry_after_ms: self.retry_after().map(|after| after.as_millis() as u32),
            }),
            ..EvaluateReply::default()
        }
    }
}

impl From<Refusal> for Status {
    /// The status, with a `google.rpc.RetryInfo` where it is known when to ask again.
    fn from(refusal: Refusal) -> Self {
        status(refusal.code(), refusal.to_string(), refusal.retry_after())
    }
}

/// A status, with a `google.rpc.RetryInfo` where it is known when to ask again.
pub(crate) fn status(code: Code, message: String, retry_after: Option<Duration>) -> Status {
    match retry_after {
        Some(after) => Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(after))),
        None => Status::new(code, message),
    }
}
