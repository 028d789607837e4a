//! [`Refusal`]: the reason why one request is not answered. Other requests of its batch are still answered.

use std::time::Duration;

use games::RowError;
use proto::v1::{EvaluateReply, RequestError};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// Retry delay after a model could not be loaded.
const LOADING: Duration = Duration::from_secs(1);

/// Error: the request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No model has been loaded yet.
    #[error("no model is loaded yet; try again")]
    NoModel,
    /// No source has the label or the version.
    #[error("no model `{0}` is served here")]
    UnknownModel(String),
    /// The named model is not loaded, and requests may not load models on this server.
    #[error("the model `{0}` is not loaded; an administrator can load it")]
    NotLoaded(String),
    /// The named model cannot be used.
    #[error("the model `{name}` cannot be served: {reason}")]
    BadModel {
        /// Requested name.
        name: String,
        /// Reason.
        reason: String,
    },
    /// There is no memory for the named model.
    #[error("the model `{name}` cannot be loaded now: {reason}")]
    NoMemory {
        /// Requested name.
        name: String,
        /// Reason.
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
    /// The request has no positions.
    #[error("the request has no positions (legal_counts is empty)")]
    Empty,
    /// The request has more positions than are allowed.
    #[error("{positions} positions in one request, at most {most} are allowed")]
    TooLarge {
        /// Positions in the request.
        positions: usize,
        /// Largest number that is allowed.
        most: usize,
    },
    /// The indices are not the rows of that many positions.
    #[error("{found} indices, the rows of {positions} positions have {expected}")]
    Indices {
        /// Indices in the request.
        found: usize,
        /// Indices that the rows take.
        expected: u64,
        /// Positions, the length of `legal_counts`.
        positions: usize,
    },
    /// The number of row lengths is not the number of positions.
    #[error(
        "{found} row lengths for {positions} positions; give one for each, or leave them out where all rows have one length"
    )]
    RowLengths {
        /// Row lengths in the request.
        found: usize,
        /// Positions, the length of `legal_counts`.
        positions: usize,
    },
    /// The counts of legal actions do not add up to their number.
    #[error("{found} legal actions, but legal_counts add up to {expected}")]
    LegalCounts {
        /// Legal actions in the request.
        found: usize,
        /// Sum of the counts.
        expected: u64,
    },
    /// A row does not fit the model's layout.
    #[error("position {position}: {error}")]
    Row {
        /// Index of the position.
        position: usize,
        /// The fault.
        error: RowError,
    },
    /// A position has no legal actions: the game is over there.
    #[error("position {position}: no legal actions")]
    NoLegalActions {
        /// Index of the position.
        position: usize,
    },
    /// An action index is beyond the model's policy.
    #[error("position {position}: action {action} is not below {actions}")]
    Action {
        /// Index of the position.
        position: usize,
        /// The action.
        action: u32,
        /// Size of the model's policy.
        actions: u32,
    },
    /// An action is named twice, so its prior would count twice.
    #[error("position {position}: action {action} is named twice")]
    Duplicate {
        /// Index of the position.
        position: usize,
        /// The action.
        action: u32,
    },
    /// The queue is full.
    #[error(
        "the queue is full: {waiting} positions wait, at most {most} may; try again in {retry_after_ms} ms"
    )]
    QueueFull {
        /// Waiting positions.
        waiting: usize,
        /// Largest number that is allowed.
        most: usize,
        /// Expected time until the waiting positions are done, in milliseconds.
        retry_after_ms: u64,
    },
    /// The deadline passed before the request was computed.
    #[error("the deadline passed before the request was computed")]
    Late,
    /// The model gave infinities or NaN.
    #[error("position {position}: the model's answer is not finite")]
    NotFinite {
        /// Index of the position.
        position: usize,
    },
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
    /// The process is shutting down.
    #[error("the server is stopping; connect again")]
    Stopping,
}

impl Refusal {
    /// Returns the gRPC status code.
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

    /// Returns the index of the position at fault, if there is one.
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

    /// Returns the time after which a retry may succeed, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::QueueFull { retry_after_ms, .. } => Some(Duration::from_millis(*retry_after_ms)),
            Self::NoMemory { .. } | Self::LoadsWait => Some(LOADING),
            _ => None,
        }
    }

    /// Returns the reply that carries this refusal on a stream.
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
    /// Returns the gRPC status, with a `google.rpc.RetryInfo` if the retry delay is known.
    fn from(refusal: Refusal) -> Self {
        status(refusal.code(), refusal.to_string(), refusal.retry_after())
    }
}

/// Returns a gRPC status, with a `google.rpc.RetryInfo` if the retry delay is known.
pub(crate) fn status(code: Code, message: String, retry_after: Option<Duration>) -> Status {
    match retry_after {
        Some(after) => Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(after))),
        None => Status::new(code, message),
    }
}
