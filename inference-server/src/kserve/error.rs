//! Errors of requests of the Open Inference Protocol as gRPC statuses. The codes are those of Triton, which public clients expect.

use tonic::{Code, Status};

use crate::intake::refusal::{self, Refusal};

/// Returns the error for a tensor, an output or a parameter that is wrong. `reason` names it.
pub(super) fn invalid(reason: impl Into<String>) -> Status {
    Status::invalid_argument(reason)
}

/// Returns the error for an input, output or parameter (`kind`) that the model does not have.
pub(super) fn unexpected(kind: &str, name: &str, model: &str, known: &str) -> Status {
    invalid(format!(
        "unexpected {kind} '{name}' for model '{model}'; it has {known}"
    ))
}

/// Returns the error for an invalid number in a tensor.
pub(super) fn wrong_number(input: &str, position: usize, reason: &str) -> Status {
    invalid(format!("input '{input}', position {position}: {reason}"))
}

/// Checks that a number is within its limit.
pub(super) fn check_number(what: &str, found: usize, most: usize) -> Result<(), Status> {
    match found > most {
        true => Err(invalid(format!(
            "{found} {what} in one request, there are at most {most}"
        ))),
        false => Ok(()),
    }
}

/// Returns the error for a model that does not exist, or not in this version. An empty version means any.
pub(super) fn unknown_model(name: &str, version: &str) -> Status {
    let version = match version {
        "" => String::new(),
        version => format!(" version {version}"),
    };
    Status::not_found(format!(
        "Request for unknown model: '{name}'{version} is not found"
    ))
}

/// Returns the status of a refusal, with a `google.rpc.RetryInfo` if the retry delay is known. Clients of this protocol retry
/// UNAVAILABLE.
pub(super) fn refused(refusal: &Refusal) -> Status {
    let (code, start) = match refusal {
        Refusal::QueueFull { .. } => (Code::Unavailable, "Exceeds maximum queue size: "),
        Refusal::Late => (Code::Unavailable, "Request timeout expired: "),
        other => (other.code(), ""),
    };
    refusal::status(code, format!("{start}{refusal}"), refusal.retry_after())
}
