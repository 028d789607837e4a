//! [`is_temporary`]: which errors of the rating role pass by themselves.

use std::io;

use network::{NetworkError, client::remote::ConnectError};

/// True if another attempt may succeed: the model store or the inference server cannot be reached, a checkpoint was removed just
/// before it was read, or the disk is full or fails.
pub fn is_temporary(error: &anyhow::Error) -> bool {
    // The outermost of the known errors decides, because its own cause may be an error of another kind.
    let known = error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<checkpoints::Error>() {
            Some(error.is_transient() || matches!(error, checkpoints::Error::NotFound { .. }))
        } else if let Some(error) = cause.downcast_ref::<ConnectError>() {
            Some(matches!(error, ConnectError::Describe { status, .. } if is_away(status.code())))
        } else if let Some(error) = cause.downcast_ref::<NetworkError>() {
            Some(match error {
                NetworkError::Server { status, .. } => is_away(status.code()),
                NetworkError::Answer { .. } => true,
                _ => false,
            })
        } else {
            cause.downcast_ref::<io::Error>().map(is_temporary_io_error)
        }
    });
    known.unwrap_or(false)
}

/// True except for errors that a person has to correct.
fn is_temporary_io_error(error: &io::Error) -> bool {
    use io::ErrorKind;

    !matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::InvalidFilename
            | ErrorKind::Unsupported
    )
}

fn is_away(code: tonic::Code) -> bool {
    use tonic::Code;

    matches!(
        code,
        Code::Unavailable
            | Code::DeadlineExceeded
            | Code::ResourceExhausted
            | Code::NotFound
            | Code::Cancelled
            | Code::Aborted
            | Code::Internal
            | Code::Unknown
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_temporary_and_a_forbidden_folder_is_not() {
        for (kind, expected) in [
            (io::ErrorKind::StorageFull, true),
            (io::ErrorKind::QuotaExceeded, true),
            (io::ErrorKind::Other, true),
            (io::ErrorKind::PermissionDenied, false),
            (io::ErrorKind::NotADirectory, false),
        ] {
            let error = anyhow::Error::new(io::Error::from(kind)).context("cannot use rating");
            assert_eq!(is_temporary(&error), expected, "{kind}");
        }
        assert!(!is_temporary(&anyhow::anyhow!("another process rates in rating")));
    }
}
