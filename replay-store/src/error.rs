//! Errors and damage of a store as a whole and of its log. (Errors of one game: [`crate::record::validate::Refusal`].)

use std::{io, path::PathBuf};

use durable::frame::Frame;

use crate::log::frame::Id;

/// A folder that cannot be opened as a replay store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder open.
    #[error(
        "{folder} is in use by another replay store or command; stop that one first, or choose another folder"
    )]
    InUse {
        /// The store's folder.
        folder: PathBuf,
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
    /// The store is damaged and must be repaired first. Nothing was changed.
    #[error("the store is damaged: {0}")]
    Damaged(Damage),
    /// The folder is not the store of this run: it holds something else, or another game, or its identity file is damaged, or a build
    /// before release 0.1 wrote it. Or this build has no such game or representation. Nothing was changed.
    #[error("{0}")]
    Refused(String),
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

impl OpenError {
    /// Returns the error for a file with a frame that this build does not know.
    pub(crate) fn newer_frame(path: impl Into<PathBuf>, found: &Frame<'_>) -> Self {
        Self::Newer {
            path: path.into(),
            found: format!("frame {}", found.name()),
        }
    }

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

/// A game that was acknowledged and cannot be read any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Sequence number.
    pub sequence: u64,
    /// Game id, if the game's name frame is intact.
    pub id: Option<Id>,
}

/// Damage of a store that was found when it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Acknowledged games that cannot be read. Opening a store for writing records them, so that they are found once.
    pub losses: Vec<Loss>,
    /// True if no copy of the ledger file is intact. The counts are then those of the log.
    pub is_ledger_lost: bool,
}

impl Damage {
    /// True if nothing is damaged.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Damage {
    /// Counts the damage, for example `2 acknowledged games cannot be read`.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        match self.losses.len() {
            0 => {}
            1 => parts.push("1 acknowledged game cannot be read".to_owned()),
            games => parts.push(format!("{games} acknowledged games cannot be read")),
        }
        if self.is_ledger_lost {
            parts.push("the ledger file is damaged".into());
        }
        out.write_str(&parts.join(", "))
    }
}
