//! Why a request of the Open Inference Protocol is not answered, and the status that says so: the codes are those that
//! Triton gives, since that is what public clients were written against.

use tonic::{Code, Status};

use crate::requests::refusal::{self, Refusal};

/// Why a request is not answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InferError {
    /// No model of this name, or not in this version.
    #[error("Request for unknown model: '{name}'{} is not found", version_words(version))]
    UnknownModel {
        /// The name.
        name: String,
        /// The version asked for; empty: any.
        version: String,
    },
    /// A model without a name.
    #[error("the request names no model")]
    Unnamed,
    /// A tensor that must be there is not.
    #[error("model '{model}' needs an input '{input}'")]
    Missing {
        /// The model.
        model: String,
        /// What is missing.
        input: String,
    },
    /// An input or output that the model does not have.
    #[error("unexpected {kind} '{name}' for model '{model}'; it has {known}")]
    Unexpected {
        /// `input`, `output` or `parameter`.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The model.
        model: String,
        /// What there is.
        known: &'static str,
    },
    /// More inputs or outputs than there are names for.
    #[error("{found} {what} in one request, there are at most {most}")]
    TooMany {
        /// `inputs` or `outputs`.
        what: &'static str,
        /// How many there were.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A tensor that is named twice.
    #[error("input '{0}' is given twice")]
    Twice(String),
    /// A data type that this tensor does not come in.
    #[error("unexpected datatype for input '{input}': expected {expected}, got {found}")]
    Datatype {
        /// The tensor.
        input: String,
        /// What there must be.
        expected: &'static str,
        /// What there was.
        found: String,
    },
    /// A shape that does not fit.
    #[error("unexpected shape for input '{input}': expected {expected}, got {found:?}")]
    Shape {
        /// The tensor.
        input: String,
        /// What there must be, -1 for any.
        expected: String,
        /// What there was.
        found: Vec<i64>,
    },
    /// The contents are not as many as the shape says.
    #[error("input '{input}' holds {found} {unit}, its shape {shape:?} needs {expected}")]
    Contents {
        /// The tensor.
        input: String,
        /// Its shape.
        shape: Vec<i64>,
        /// What there must be.
        expected: u64,
        /// What there was.
        found: u64,
        /// Bytes or elements.
        unit: &'static str,
    },
    /// Raw and typed contents, or not one raw content for each input.
    #[error("{0}")]
    Raw(String),
    /// A number that means nothing in its place.
    #[error("input '{input}', position {position}: {reason}")]
    Number {
        /// The tensor.
        input: String,
        /// The offending position.
        position: usize,
        /// What is wrong.
        reason: String,
    },
    /// `priors` were asked for without saying of which actions.
    #[error("output 'priors' needs an input 'legal_actions' [n, k]; without one, ask for 'policy_logits'")]
    PriorsOfNothing,
    /// Logits were asked for together with legal actions.
    #[error("with an input 'legal_actions' the policy is given as 'priors', not as 'policy_logits'")]
    LogitsOfSome,
    /// The call's own deadline passed. (That of a request's parameter is a [`Refusal::Late`].)
    #[error("the call's deadline passed before it was this request's turn")]
    Expired,
    /// What the other door refuses too.
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
    /// That there are no more of something than there may be.
    pub(super) fn check_number(what: &'static str, found: usize, most: usize) -> Result<(), Self> {
        if found > most {
            return Err(Self::TooMany { what, found, most });
        }
        Ok(())
    }

    /// The gRPC status code.
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownModel { .. } => Code::NotFound,
            // UNAVAILABLE is what such clients try again.
            Self::Refused(Refusal::QueueFull { .. } | Refusal::Late) => Code::Unavailable,
            Self::Refused(refusal) => refusal.code(),
            Self::Expired => Code::DeadlineExceeded,
            _ => Code::InvalidArgument,
        }
    }
}

impl From<InferError> for Status {
    /// The status, with a `google.rpc.RetryInfo` where it is known when to ask again.
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
