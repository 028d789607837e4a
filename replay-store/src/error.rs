//! Errors of a store as a whole and of its log. (Errors of one game: [`crate::record::validate::Refusal`].)

use std::{io, path::PathBuf};

use crate::damage::Damage;

/// A folder that cannot be opened as a replay store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder open.
    #[error("{folder} is in use by another replay store; stop that one first, or choose another folder")]
    InUse {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The folder holds something else.
    #[error("{folder} holds files but no replay store; choose an empty folder")]
    Foreign {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The identity file cannot be read.
    #[error("{file} is damaged ({problem}); restore it, or move the folder away to start afresh")]
    Identity {
        /// The identity file.
        file: PathBuf,
        /// The parser's message.
        problem: String,
    },
    /// A newer build wrote a file of the store. Nothing was changed.
    #[error(
        "{path} holds {found}, which this build does not know; nothing was changed. \
         Open the store with the build that wrote it, or a newer one"
    )]
    Newer {
        /// The file or folder.
        path: PathBuf,
        /// Name of the unknown format.
        found: String,
    },
    /// A build before release 0.1 wrote the folder. Nothing was changed.
    #[error(
        "{folder} was written by a build before release 0.1, whose formats this build does not read; nothing was changed. \
         Begin a new run, or use the build that wrote it"
    )]
    Earlier {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The store is damaged and must be repaired first. Nothing was changed.
    #[error("the store is damaged: {0}")]
    Damaged(Damage),
    /// The folder holds another game.
    #[error(
        "{folder} holds games of {stored}, this run plays {requested}; choose another folder for this run"
    )]
    OtherGame {
        /// The store's folder.
        folder: PathBuf,
        /// The game and options in it.
        stored: String,
        /// The game and options of the run.
        requested: String,
    },
    /// This build has no such game or representation.
    #[error(transparent)]
    Layout(#[from] UnknownLayout),
    /// The archive's location is not valid.
    #[error("replay.archive cannot be used")]
    Archive(#[from] objects::LocationError),
    /// The file system reported an error.
    #[error("cannot use {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The file system's error.
        source: io::Error,
    },
    /// A volume could not be opened or written.
    #[error("cannot open volume {folder}")]
    Volume {
        /// The volume's folder.
        folder: PathBuf,
        /// The reason.
        source: VolumeError,
    },
}

/// Error: games of this name and representation cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("games cannot be checked: {0}")]
pub struct UnknownLayout(pub String);

impl OpenError {
    /// Returns a converter for `map_err` that adds the path to an error of a file operation.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// A volume of the log that cannot be opened or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The disk is full. Nothing was written; a later attempt may succeed.
    #[error("the disk is full")]
    Full,
    /// The process has no file descriptor left. A later attempt may succeed.
    #[error("no file descriptor is left for a new volume; raise the limit of open files")]
    NoDescriptor,
    /// The file system reported an error.
    #[error("{0}")]
    Broken(String),
    /// A newer build wrote a part of the volume.
    #[error("{0} is unknown to this build")]
    Newer(String),
}

/// A game that cannot be read from the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The log has no game with this sequence number.
    #[error("missing")]
    Missing,
    /// A part is missing or fails its checksum.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// Error: the store has stopped after an error that it cannot continue from. Nothing more is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store has stopped: {reason}")]
pub struct StoreFailed {
    /// The operation that failed, and its error.
    pub reason: String,
}
