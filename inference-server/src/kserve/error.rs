//! Errors of requests of the Open Inference Protocol, and their gRPC status. The codes are those of Triton, which public
//! clients expect.

use tonic::{Code, Status};

use crate::intake::refusal::{self, Refusal};

/// Error: a request is not answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InferError {
    /// There is no model of this name, or not in this version.
    #[error("Request for unknown model: '{name}'{} is not found", if version.is_empty() { String::new() } else { format!(" version {version}") })]
    UnknownModel {
        /// The name.
        name: String,
        /// The requested version; empty: any.
        version: String,
    },
    /// A tensor, an output or a parameter is wrong. The text names it.
    #[error("{0}")]
    Invalid(String),
    /// The call's deadline passed. (The deadline in a request's parameter gives [`Refusal::Late`].)
    #[error("the call's deadline passed before the request was computed")]
    Expired,
    /// A refusal common to both protocols.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl InferError {
    /// Returns the error for an input, output or parameter (`kind`) that the model does not have.
    pub(super) fn unexpected(kind: &str, name: &str, model: &str, known: &str) -> Self {
        Self::Invalid(format!(
            "unexpected {kind} '{name}' for model '{model}'; it has {known}"
        ))
    }

    /// Returns the error for an invalid number in a tensor.
    pub(super) fn number(input: &str, position: usize, reason: &str) -> Self {
        Self::Invalid(format!("input '{input}', position {position}: {reason}"))
    }

    /// Checks that a number is within its limit.
    pub(super) fn check_number(what: &str, found: usize, most: usize) -> Result<(), Self> {
        if found > most {
            return Err(Self::Invalid(format!(
                "{found} {what} in one request, there are at most {most}"
            )));
        }
        Ok(())
    }

    /// Returns the gRPC status code.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownModel { .. } => Code::NotFound,
            // Clients of this protocol retry UNAVAILABLE.
            Self::Refused(Refusal::QueueFull { .. } | Refusal::Late) => Code::Unavailable,
            Self::Refused(refusal) => refusal.code(),
            Self::Expired => Code::DeadlineExceeded,
            Self::Invalid(_) => Code::InvalidArgument,
        }
    }
}

impl From<InferError> for Status {
    /// Returns the status, with a `google.rpc.RetryInfo` if the retry delay is known.
    fn from(error: InferError) -> Self {
        let message = match &error {
            InferError::Refused(Refusal::QueueFull { .. }) => format!("Exceeds maximum queue size: {error}"),
            InferError::Refused(Refusal::Late) => format!("Request timeout expired: {error}"),
            _ => error.to_string(),
        };
        let retry_after = match &error {
            InferError::Refused(refusal) => refusal.retry_after(),
            _ => None,
        };
        refusal::status(error.code(), message, retry_after)
    }
}
