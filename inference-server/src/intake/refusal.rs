//! [`Refusal`]: the reason why one request is not answered. Other requests of its batch are still answered.

use std::time::Duration;

use proto::v1::{EvaluateReply, RequestError};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// Error: the request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The named model has not been loaded yet.
    #[error("the model `{0}` is not loaded yet; try again")]
    NoModel(String),
    /// The newest checkpoint of the default model was refused, and no older one is served.
    #[error("the model `{name}` is not loaded: {reason}; try again when there is another checkpoint")]
    NewestRefused {
        /// Name of the model.
        name: String,
        /// Reason.
        reason: String,
    },
    /// The name is not one that this server serves.
    #[error("unknown model `{0}`; inference.also_serve lists the labels and versions that are served")]
    UnknownModel(String),
    /// The named model was refused.
    #[error("the model `{name}` cannot be served: {reason}")]
    BadModel {
        /// Name of the model.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A number of the request is wrong.
    #[error("{}{reason}", position.map_or_else(String::new, |position| format!("position {position}: ")))]
    Invalid {
        /// Index of the offending position, if the fault is in one.
        position: Option<usize>,
        /// Reason.
        reason: String,
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
    /// Returns the refusal of a request whose parts do not fit each other or the server.
    pub(crate) fn invalid(reason: String) -> Self {
        let position = None;
        Self::Invalid { position, reason }
    }

    /// Returns the refusal of a request with an invalid position.
    pub(crate) fn at(position: usize, reason: impl ToString) -> Self {
        let (position, reason) = (Some(position), reason.to_string());
        Self::Invalid { position, reason }
    }

    /// Returns the gRPC status code.
    pub fn code(&self) -> Code {
        match self {
            Self::NoModel(_) | Self::NewestRefused { .. } | Self::Stopping => Code::Unavailable,
            Self::UnknownModel(_) => Code::NotFound,
            Self::BadModel { .. } => Code::FailedPrecondition,
            Self::Invalid { .. } => Code::InvalidArgument,
            Self::QueueFull { .. } => Code::ResourceExhausted,
            Self::Late => Code::DeadlineExceeded,
            Self::NotFinite { .. } | Self::Device(_) => Code::Internal,
        }
    }

    /// Returns the index of the offending position, if there is one.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Invalid { position, .. } => *position,
            Self::NotFinite { position } => Some(*position),
            _ => None,
        }
    }

    /// Returns the time after which a retry may succeed, if it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::QueueFull { retry_after_ms, .. } => Some(Duration::from_millis(*retry_after_ms)),
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
