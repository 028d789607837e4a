//! [`SpoolError`].

use std::{io, path::PathBuf};

/// Error: the spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// A file operation failed, for example because the disk is full.
    #[error("{action} {path}")]
    Io {
        /// The operation, as the beginning of the message.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// Another actor uses the folder.
    #[error("{path} is the spool of another running actor; give each actor a spool folder of its own")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A newer build wrote games into the folder. Nothing was changed.
    #[error(
        "{path} holds games of format {found}, which this build does not know; nothing was changed. \
         Start the build that wrote them, or a newer one, to send them"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Magic of the games' records.
        found: String,
    },
    /// A written game is missing or damaged.
    #[error("a finished game in {path} cannot be read any more: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
}
