//! What can keep checkpoints from being rated.

use std::{io, path::PathBuf};

use config::ConfigError;
use games::registry::UnknownGame;

use network::NetworkError;

use crate::{
    matches::{FolderError, MatchError, OpeningError, PlanError},
    players::PlayerError,
    statistics::sprt::SprtError,
};

/// A checkpoint that cannot be rated.
#[derive(Debug, thiserror::Error)]
pub enum RatingError {
    /// The configuration describes nothing that could be rated.
    #[error("nothing can be rated")]
    Config(#[source] ConfigError),
    /// `[rating]` describes no test.
    #[error("[rating]: {0}")]
    Test(#[from] SprtError),
    /// The run's rules.
    #[error("`game.rules`: {0}")]
    Rules(serde_json::Error),
    /// Openings that cannot be played.
    #[error("`rating.opening_plies`: {0}")]
    Openings(#[from] OpeningError),
    /// A match that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A network that cannot be had.
    #[error("checkpoint {version}: {source}")]
    Player {
        /// The checkpoint.
        version: String,
        /// Why.
        source: Box<PlayerError>,
    },
    /// The match.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The model store.
    #[error(transparent)]
    Store(#[from] checkpoints::Error),
    /// Two processes, one folder.
    #[error("another process rates in {0}; give each its own `rating.folder`, or stop the other one")]
    Taken(PathBuf),
    /// The folder of matches and ratings.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The thread that plays ended.
    #[error("the match ended without a word: {0}")]
    Thread(String),
}

impl RatingError {
    pub(super) fn of_game(error: UnknownGame) -> Self {
        Self::Config(ConfigError::Game(format!("`game.name`: {error}")))
    }

    /// Whether it may be over by itself: the model store or the inference server is away, a checkpoint was removed
    /// just when it was to be read, or the disk is full or fails.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) => passes(error),
            Self::Player { source, .. } => is_passing(source),
            Self::Match(MatchError::Player { source, .. }) => is_passing(source),
            Self::Io { source, .. } | Self::Match(MatchError::Folder(FolderError::Io { source, .. })) => {
                mends_itself(source)
            }
            _ => false,
        }
    }
}

/// All but what a person has to put right.
fn mends_itself(error: &io::Error) -> bool {
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

fn passes(error: &checkpoints::Error) -> bool {
    error.is_transient() || matches!(error, checkpoints::Error::NotFound { .. })
}

fn is_passing(error: &PlayerError) -> bool {
    use network::{ModelError, client::remote::ConnectError};

    match error {
        PlayerError::Model(ModelError::Store { source, .. }) => passes(source),
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
    fn a_full_disk_passes_and_a_folder_that_may_not_be_used_does_not() {
        let path = || PathBuf::from("rating");
        for (kind, passes) in [
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
                (own.is_passing(), of_match.is_passing()),
                (passes, passes),
                "{kind}"
            );
        }
        assert!(!RatingError::Taken(path()).is_passing());
    }
}
