//! What can go wrong with a store as a whole. (What is wrong with one game: [`crate::record::validate::Refusal`].)

use std::{io, path::PathBuf};

use crate::log::volume::VolumeError;

/// A folder that cannot be opened as a replay store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error("{folder} is in use by another replay store; stop that one first, or choose another folder")]
    InUse {
        /// The store's folder.
        folder: PathBuf,
    },
    /// It holds something else.
    #[error("{folder} holds files but no replay store; choose an empty folder")]
    Foreign {
        /// The store's folder.
        folder: PathBuf,
    },
    /// It says it is a replay store, in words that cannot be read.
    #[error("{file} is damaged ({problem}); restore it, or move the folder away to start afresh")]
    Identity {
        /// The identity file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// It was written in another form.
    #[error("{file} is of format {found}, this build reads format {known}")]
    Format {
        /// The identity file.
        file: PathBuf,
        /// The format it names.
        found: u32,
        /// The format of this build.
        known: u32,
    },
    /// It holds another game.
    #[error("{folder} holds games of {stored}, this run plays {asked}; choose another folder for this run")]
    OtherGame {
        /// The store's folder.
        folder: PathBuf,
        /// The game and options in it.
        stored: String,
        /// The game and options asked for.
        asked: String,
    },
    /// The archive's address means nothing here.
    #[error("replay.archive: {0}")]
    Archive(#[from] objects::LocationError),
    /// The file system reported an error.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A database could not be opened or written, not even after it was rebuilt.
    #[error("volume {folder}: {source}")]
    Volume {
        /// The volume's folder.
        folder: PathBuf,
        /// What the database says.
        source: VolumeError,
    },
}

impl OpenError {
    /// For `map_err` on file operations.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// The store has stopped: something that must not fail has failed. Nothing more is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store has stopped: {reason}")]
pub struct StoreFailed {
    /// What failed.
    pub reason: String,
}
