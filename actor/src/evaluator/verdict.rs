//! Which errors pass with time and which never will.

use tonic::Code;

/// Whether asking again is pointless: the request itself is wrong, or the server is no evaluator, or will not talk to us.
///
/// A model that is not found may still be published, so that passes.
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
