//! Errors of requests of the Open Inference Protocol, and their gRPC status. The codes are those of Triton, which public
//! clients expect.

use tonic::{Code, Status};

use crate::requests::refusal::{self, Refusal};

/// Error: a request is not answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InferError {
    /// There is no model of this name, or not in this version.
    #[error("Request for unknown model: '{name}'{} is not found", version_words(version))]
    UnknownModel {
        /// The name.
        name: String,
        /// The version asked for; empty: any.
        version: String,
    },
    /// The request names no model.
    #[error("the request names no model")]
    Unnamed,
    /// A required tensor is missing.
    #[error("model '{model}' needs an input '{input}'")]
    Missing {
        /// The model.
        model: String,
        /// Name of the missing tensor.
        input: String,
    },
    /// The model has no such input, output or parameter.
    #[error("unexpected {kind} '{name}' for model '{model}'; it has {known}")]
    Unexpected {
        /// `input`, `output` or `parameter`.
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// The model.
        model: String,
        /// The existing names.
        known: &'static str,
    },
    /// The request has more inputs or outputs than there are names.
    #[error("{found} {what} in one request, there are at most {most}")]
    TooMany {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// Number in the request.
        found: usize,
        /// Greatest allowed number.
        most: usize,
    },
    /// A tensor is given twice.
    #[error("input '{0}' is given twice")]
    Twice(String),
    /// A tensor has an unsuitable data type.
    #[error("unexpected datatype for input '{input}': expected {expected}, got {found}")]
    Datatype {
        /// The tensor.
        input: String,
        /// The expected data type or count.
        expected: &'static str,
        /// The value in the request.
        found: String,
    },
    /// A tensor has an unsuitable shape.
    #[error("unexpected shape for input '{input}': expected {expected}, got {found:?}")]
    Shape {
        /// The tensor.
        input: String,
        /// The expected shape; -1 for any length.
        expected: String,
        /// The value in the request.
        found: Vec<i64>,
    },
    /// The length of a tensor's contents does not match its shape.
    #[error("input '{input}' has {found} {unit}, its shape {shape:?} needs {expected}")]
    Contents {
        /// The tensor.
        input: String,
        /// Shape of the tensor.
        shape: Vec<i64>,
        /// The expected data type or count.
        expected: u64,
        /// The value in the request.
        found: u64,
        /// Unit of the counts, `bytes` or `elements`.
        unit: &'static str,
    },
    /// Raw and typed contents are mixed, or the number of raw contents is not that of the inputs.
    #[error("{0}")]
    Raw(String),
    /// A number is invalid in its place.
    #[error("input '{input}', position {position}: {reason}")]
    Number {
        /// The tensor.
        input: String,
        /// The offending position.
        position: usize,
        /// Reason of the error.
        reason: String,
    },
    /// The output `priors` was requested without legal actions.
    #[error("output 'priors' needs an input 'legal_actions' [n, k]; without one, request 'policy_logits'")]
    PriorsOfNothing,
    /// Logits were requested together with legal actions.
    #[error("with an input 'legal_actions' the policy output is 'priors', not 'policy_logits'")]
    LogitsOfSome,
    /// The call's deadline passed. (The deadline in a request's parameter gives [`Refusal::Late`].)
    #[error("the call's deadline passed before the request was computed")]
    Expired,
    /// A refusal common to both protocols.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

fn version_words(version: &str) -> String {
    if version.is_empty() {
        String::new()
    } else {
        format!(" version {version}")
    }
}

impl InferError {
    /// Checks that a number is within its limit.
    pub(super) fn check_number(what: &'static str, found: usize, most: usize) -> Result<(), Self> {
        if found > most {
            return Err(Self::TooMany { what, found, most });
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
            _ => Code::InvalidArgument,
        }
    }
}

impl From<InferError> for Status {
    /// Returns the status, with a `google.rpc.RetryInfo` if the retry delay is known.
    fn from(fault: InferError) -> Self {
        let message = match &fault {
            InferError::Refused(Refusal::QueueFull { .. }) => format!("Exceeds maximum queue size: {fault}"),
            InferError::Refused(Refusal::Late) => format!("Request timeout expired: {fault}"),
            _ => fault.to_string(),
        };
        let retry_after = match &fault {
            InferError::Refused(refusal) => refusal.retry_after(),
            _ => None,
        };
        refusal::status(fault.code(), message, retry_after)
    }
}
