//! Why one request is not answered. Its neighbours are.

use games::RowError;
use proto::v1::{EvaluateReply, RequestError};
use tonic::{Code, Status};

/// Why one request is not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No model has been loaded yet.
    #[error("no model is loaded yet; try again")]
    NoModel,
    /// Neither the label nor the version is served here.
    #[error("no model `{0}` is served here")]
    UnknownModel(String),
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
    #[error("{found} indices, {expected} expected: {positions} positions of {row_length}")]
    Indices {
        /// Indices there were.
        found: usize,
        /// Indices there must be.
        expected: usize,
        /// Positions, by `legal_counts`.
        positions: usize,
        /// Values in a row.
        row_length: usize,
    },
    /// Row lengths are given, but not one for each position.
    #[error("{found} row lengths for {positions} positions; leave them out, or give one for each")]
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
    #[error("the queue is full: {waiting} positions wait, {most} may; try again later")]
    QueueFull {
        /// Positions that wait.
        waiting: usize,
        /// The limit.
        most: usize,
    },
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
            Self::NoModel | Self::Stopping => Code::Unavailable,
            Self::UnknownModel(_) => Code::NotFound,
            Self::Empty
            | Self::TooLarge { .. }
            | Self::Indices { .. }
            | Self::RowLengths { .. }
            | Self::LegalCounts { .. }
            | Self::Row { .. }
            | Self::NoLegalActions { .. }
            | Self::Action { .. }
            | Self::Duplicate { .. } => Code::InvalidArgument,
            Self::QueueFull { .. } => Code::ResourceExhausted,
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

    /// The reply that says so on a stream.
    pub fn in_band(&self, id: u64) -> EvaluateReply {
        EvaluateReply {
            id,
            error: Some(RequestError {
                code: self.code() as i32,
                message: self.to_string(),
                position: self.position().and_then(|position| u32::try_from(position).ok()),
            }),
            ..EvaluateReply::default()
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code(), refusal.to_string())
    }
}
