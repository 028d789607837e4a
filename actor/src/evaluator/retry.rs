//! Which errors are worth another attempt.

use tonic::Code;

/// True if another attempt cannot help: the request is invalid, the server is no evaluator, or it denies access.
///
/// `NotFound` is not final, because a model that is missing may still be published.
pub(super) fn is_final(code: Code) -> bool {
    matches!(
        code,
        Code::InvalidArgument
            | Code::OutOfRange
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::Unauthenticated
            | Code::PermissionDenied
    )
}
