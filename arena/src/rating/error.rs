//! Errors of the rating role, and which of them are temporary.

use std::{io, path::PathBuf};

use config::ConfigError;
use games::registry::UnknownGame;

use network::NetworkError;

use crate::{
    matches::{FolderError, MatchError, OpeningError, PlanError},
    players::PlayerError,
    statistics::sprt::SprtError,
};

/// Error: checkpoints cannot be rated.
#[derive(Debug, thiserror::Error)]
pub enum RatingError {
    /// The configuration is invalid for rating.
    #[error("checkpoints of this run cannot be rated")]
    Config(#[source] ConfigError),
    /// The sequential test in `[rating]` is invalid.
    #[error("the sequential test in `[rating]` is invalid")]
    Test(#[from] SprtError),
    /// The rules of the run are invalid.
    #[error("`game.rules`: {0}")]
    Rules(serde_json::Error),
    /// The openings cannot be drawn.
    #[error("the openings of the match cannot be drawn")]
    Openings(#[from] OpeningError),
    /// The match cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
    /// Another process has locked the rating folder.
    #[error("another process rates in {0}; give each its own `rating.folder`, or stop the other one")]
    Locked(PathBuf),
    /// A newer build wrote a match. Nothing was changed.
    #[error(
        "{path} holds a match of schema {found}, which this build does not know; nothing was changed. \
         Rate with the build that wrote it, or a newer one, or set another `rating.folder`"
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Schema of the match.
        found: u64,
    },
    /// A file of the rating folder cannot be read or written.
    #[error("cannot use {path}")]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The thread that plays has panicked.
    #[error("the thread that plays the match has ended: {0}")]
    Thread(String),
}

impl RatingError {
    pub(super) fn of_game(error: UnknownGame) -> Self {
        Self::Config(ConfigError::Game(format!("`game.name`: {error}")))
    }

    /// True if another attempt may succeed: the model store or the inference server cannot be reached, a checkpoint was removed
    /// just before it was read, or the disk is full or fails.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Store(error) => is_temporary_store_error(error),
            Self::Player { source, .. } => is_temporary_player_error(source),
            Self::Match(MatchError::Player { source, .. }) => is_temporary_player_error(source),
            Self::Io { source, .. } | Self::Match(MatchError::Folder(FolderError::Io { source, .. })) => {
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
            let of_match = FolderError::Io {
                path: path(),
                source: kind.into(),
            };
            let of_match = RatingError::Match(of_match.into());
            assert_eq!(
                (own.is_temporary(), of_match.is_temporary()),
                (is_temporary, is_temporary),
                "{kind}"
            );
        }
        assert!(!RatingError::Locked(path()).is_temporary());
    }
}
