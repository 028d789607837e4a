//! Errors of the rating role, and which of them are temporary.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

use config::ConfigError;
use network::NetworkError;

use crate::{matches::MatchError, players::PlayerError};

/// Error: checkpoints cannot be rated.
#[derive(Debug, thiserror::Error)]
pub enum RatingError {
    /// The configuration is invalid for rating.
    #[error("checkpoints of this run cannot be rated")]
    Config(#[source] ConfigError),
    /// The network of a checkpoint cannot be opened.
    #[error("cannot open the network of checkpoint {version}")]
    Player {
        /// Version of the checkpoint.
        version: String,
        /// Reason.
        source: Box<PlayerError>,
    },
    /// The match cannot continue.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The model store cannot be used.
    #[error(transparent)]
    Store(#[from] checkpoints::Error),
    /// A file of the rating folder cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The match cannot be planned, the folder belongs to another process or build, or the thread that plays has panicked.
    #[error("{what}")]
    Other {
        /// The fault in a sentence.
        what: String,
        /// Cause, if there is one.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl RatingError {
    pub(super) fn other(what: impl Into<String>) -> Self {
        Self::Other {
            what: what.into(),
            source: None,
        }
    }

    /// A fault in `what`, a key of the configuration.
    pub(super) fn of_key<E: Error + Send + Sync + 'static>(what: &str) -> impl FnOnce(E) -> Self {
        let what = format!("{what} cannot be used");
        move |error| Self::Other {
            what,
            source: Some(Box::new(error)),
        }
    }

    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    /// True if another attempt may succeed: the model store or the inference server cannot be reached, a checkpoint was removed
    /// just before it was read, or the disk is full or fails.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => is_temporary_store_error(error),
            Self::Player { source, .. } => is_temporary_player_error(source),
            Self::Match(MatchError::Player { source, .. }) => is_temporary_player_error(source),
            Self::Io { source, .. } | Self::Match(MatchError::Io { source, .. }) => {
                is_temporary_io_error(source)
            }
            _ => false,
        }
    }
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

fn is_temporary_store_error(error: &checkpoints::Error) -> bool {
    error.is_transient() || matches!(error, checkpoints::Error::NotFound { .. })
}

fn is_temporary_player_error(error: &PlayerError) -> bool {
    use network::{ModelError, client::remote::ConnectError};

    match error {
        PlayerError::Model(ModelError::Store { source, .. }) => is_temporary_store_error(source),
        PlayerError::Connect(ConnectError::Describe { status, .. })
        | PlayerError::Network(NetworkError::Server { status, .. }) => is_away(status.code()),
        PlayerError::Network(NetworkError::Answer { .. }) => true,
        _ => false,
    }
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
        let path = || PathBuf::from("rating");
        for (kind, is_temporary) in [
            (io::ErrorKind::StorageFull, true),
            (io::ErrorKind::QuotaExceeded, true),
            (io::ErrorKind::Other, true),
            (io::ErrorKind::PermissionDenied, false),
            (io::ErrorKind::NotADirectory, false),
        ] {
            let own = RatingError::Io {
                path: path(),
                source: kind.into(),
            };
            let of_match = RatingError::Match(MatchError::Io {
                path: path(),
                source: kind.into(),
            });
            assert_eq!(
                (own.is_temporary(), of_match.is_temporary()),
                (is_temporary, is_temporary),
                "{kind}"
            );
        }
        assert!(!RatingError::other("another process rates in rating").is_temporary());
    }
}
