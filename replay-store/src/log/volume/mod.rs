//! A volume: the games of a run of sequence numbers, only ever appended to, and removed as a whole once they are retired.
//!
//! | module | what it is for |
//! |---|---|
//! | [`log`] | a segment log: one file of checksummed frames (the default) |
//! | [`database`] | a sled database of the same frames |
//!
//! Which of the two a new volume is is the setting `replay.engine`; a volume that is there is opened as what it is, so a
//! store changes over as its volumes turn over.

pub mod database;
pub mod log;

use std::{io, path::Path, sync::Arc};

use crate::{log::files::Files, log::frame::Id, log::ledger::Ledger};
use database::Database;
use log::Log;

pub use config::ReplayEngine as Engine;

/// What a volume did instead of its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The disk is full. Nothing was written, and later it may go well.
    #[error("the disk is full")]
    Full,
    /// The file system, or sled, reported an error.
    #[error("{0}")]
    Broken(String),
    /// sled panicked.
    #[error("the database panicked: {0}")]
    Panic(String),
    /// The record is longer than a game may be.
    #[error("a record of {0} bytes is too long")]
    TooLong(usize),
}

impl VolumeError {
    pub(crate) fn io(error: io::Error) -> Self {
        if crate::log::files::is_full(&error) {
            Self::Full
        } else {
            Self::Broken(error.to_string())
        }
    }
}

/// Why a game cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not there.
    #[error("missing")]
    Missing,
    /// A part is missing or fails its checksum.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

/// A game as it is written.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its sequence number.
    pub sequence: u64,
    /// Its id.
    pub id: Id,
    /// Its record ([`crate::record`]).
    pub record: Vec<u8>,
}

/// What is written at once: all of it is durable together.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Games.
    pub entries: &'a [Entry],
    /// Sequence numbers that are known to be lost, with their ids where those are known.
    pub lost: &'a [(u64, Option<Id>)],
    /// Games of this volume that are deleted.
    pub deleted: &'a [u64],
    /// The ledger as of this commit.
    pub ledger: &'a Ledger,
}

/// An open volume.
#[derive(Debug)]
pub enum Volume {
    /// A segment log.
    Log(Log),
    /// A sled database.
    Database(Database),
}

impl Volume {
    /// Opens the volume in `folder`, or makes it as `engine` says. What sled does to a damaged file while opening it is done
    /// then, so whoever suspects damage salvages first; a log that is damaged is left as it is.
    ///
    /// # Errors
    /// [`VolumeError`] with what the file system or sled says.
    pub fn open(
        files: &Arc<dyn Files>,
        folder: &Path,
        first: u64,
        engine: Engine,
    ) -> Result<Self, VolumeError> {
        let engine = engine_of(files.as_ref(), folder).unwrap_or(engine);
        match engine {
            Engine::Log => Log::open(files, folder, first).map(Self::Log),
            Engine::Sled => Database::open(folder, first).map(Self::Database),
        }
    }

    /// Writes a commit; all of it is durable when this returns.
    ///
    /// # Errors
    /// [`VolumeError`]; after [`VolumeError::Full`] the volume is as it was before, after any other error nothing may be
    /// assumed of it, and it must not be written to again.
    pub fn commit(&self, commit: Commit<'_>) -> Result<(), VolumeError> {
        match self {
            Self::Log(log) => log.commit(commit),
            Self::Database(database) => database.commit(commit),
        }
    }

    /// Reads a game's record.
    ///
    /// # Errors
    /// [`ReadError`]; the other games of the volume are not touched by it.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        match self {
            Self::Log(log) => log.read(sequence),
            Self::Database(database) => database.read(sequence),
        }
    }

    /// The id that the names say this sequence number has.
    pub fn name(&self, sequence: u64) -> Option<Id> {
        match self {
            Self::Log(log) => log.name(sequence),
            Self::Database(database) => database.name(sequence),
        }
    }

    /// Whether this sequence number is known to be lost, and its id where that is known too.
    pub fn lost(&self, sequence: u64) -> Option<Option<Id>> {
        match self {
            Self::Log(log) => log.lost(sequence),
            Self::Database(database) => database.lost(sequence),
        }
    }

    /// Whether this game was deleted.
    pub fn deleted(&self, sequence: u64) -> bool {
        match self {
            Self::Log(log) => log.deleted(sequence),
            Self::Database(database) => database.deleted(sequence),
        }
    }

    /// The ledger as of the last commit; `None` where there was no commit or it cannot be read.
    pub fn ledger(&self) -> Option<Ledger> {
        match self {
            Self::Log(log) => log.ledger(),
            Self::Database(database) => database.ledger(),
        }
    }

    /// The first sequence number that belongs to it.
    pub fn first(&self) -> u64 {
        match self {
            Self::Log(log) => log.first,
            Self::Database(database) => database.first,
        }
    }

    /// Where the volume lies.
    pub fn folder(&self) -> &Path {
        match self {
            Self::Log(log) => log.folder(),
            Self::Database(database) => database.folder(),
        }
    }
}

/// What the volume in `folder` is; `None` where there is none, or what is there says nothing.
pub fn engine_of(files: &dyn Files, folder: &Path) -> Option<Engine> {
    if files.exists(&folder.join(log::FILE)) {
        Some(Engine::Log)
    } else if files.exists(&folder.join(database::FILE)) {
        Some(Engine::Sled)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
