//! A volume as a sled database.
//!
//! | key | value |
//! |---|---|
//! | `g` · sequence · part | a framed part of the game's record |
//! | `i` · sequence | the game's framed name, a second witness that it was here |
//! | `d` · sequence | the game is known to be lost (its id, where that is known) |
//! | `x` · sequence | the game was deleted |
//! | `l` | the ledger as of the last batch |
//!
//! That volumes are only appended to and removed as a whole is not for taste: in a database that is deleted from at one end and inserted into at the other, sled 0.34 never
//! gets its space back (measured: after 8 turn-overs of a 20 MB window it took 195 MB, and kept
//! growing), while appending costs a steady factor of 1.8 to 2.0.
//!
//! Durable means durable: sled's flush on Linux is `sync_file_range`, which covers neither a grown
//! file's length nor a disk's own cache, so a commit ends with `fdatasync` of the same file.
//!
//! sled panics in some states of damage. Every call into it is guarded, and a panic becomes an error.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use service::contain::contain;

use super::{Commit, ReadError, VolumeError};
use crate::{
    log::frame::{self, Id},
    log::ledger::Ledger,
};

/// sled's segment: small volumes stay small, and a leaf of [`frame::PART_BYTES`] parts stays inside.
const SEGMENT_BYTES: usize = 512 * 1024;

/// sled's own page cache, for each volume. Decoded games have a better one ([`crate::window::cache`]).
const PAGE_CACHE_BYTES: u64 = 4 * 1024 * 1024;

/// How long a database that this process has just closed may take to let go of its lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// sled's file in the volume's folder.
pub const FILE: &str = "db";

/// An open database.
#[derive(Debug)]
pub struct Database {
    /// The first sequence number that belongs to it.
    pub first: u64,
    folder: PathBuf,
    database: sled::Db,
    file: File,
}

impl Database {
    /// Opens the volume in `folder`, or makes it; what sled does to a damaged file while opening it is
    /// done then, so whoever suspects damage salvages first.
    ///
    /// # Errors
    /// [`VolumeError`] with what sled says.
    pub fn open(folder: &Path, first: u64) -> Result<Self, VolumeError> {
        fs::create_dir_all(folder).map_err(io_error)?;
        let config = sled::Config::new()
            .path(folder)
            .flush_every_ms(None)
            .use_compression(false)
            .segment_size(SEGMENT_BYTES)
            .cache_capacity(PAGE_CACHE_BYTES);
        let began = Instant::now();
        let database = loop {
            match guarded(|| config.open()) {
                Err(VolumeError::Broken(message))
                    if message.contains("could not acquire lock") && began.elapsed() < LOCK_PATIENCE =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        let file = File::open(folder.join(FILE)).map_err(io_error)?;
        // What a process that was killed had not synced counts from here on.
        file.sync_data().map_err(io_error)?;
        Ok(Self {
            first,
            folder: folder.into(),
            database,
            file,
        })
    }

    /// As [`super::Volume::commit`].
    ///
    /// # Errors
    /// As there; a full disk is no [`VolumeError::Full`] here, for sled does not recover from it.
    pub fn commit(&self, commit: Commit<'_>) -> Result<(), VolumeError> {
        let mut batch = sled::Batch::default();
        for entry in commit.entries {
            let frames = frame::split(entry.sequence, &entry.record)
                .ok_or(VolumeError::TooLong(entry.record.len()))?;
            for (part, frame) in frames.into_iter().enumerate() {
                batch.insert(&part_key(entry.sequence, part as u16), frame);
            }
            batch.insert(
                &key(b'i', entry.sequence),
                &frame::name(entry.sequence, &entry.id),
            );
        }
        for (sequence, id) in commit.lost {
            batch.insert(
                &key(b'd', *sequence),
                id.as_ref().map_or(&[][..], |id| id.as_slice()),
            );
        }
        for sequence in commit.deleted {
            batch.insert(&key(b'x', *sequence), &[]);
        }
        batch.insert(b"l", commit.ledger.pack(0).as_slice());
        guarded(|| self.database.apply_batch(batch))?;
        guarded(|| self.database.flush())?;
        self.file.sync_data().map_err(io_error)
    }

    /// Reads a game's record.
    ///
    /// # Errors
    /// [`ReadError`]; the other games of the volume are not touched by it.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        let mut record = Vec::new();
        let mut parts = 1;
        let mut at = 0;
        while at < parts {
            let value = guarded(|| self.database.get(part_key(sequence, at)))?;
            let value = match value {
                Some(value) => value,
                None if at == 0 => return Err(ReadError::Missing),
                None => return Err(ReadError::Damaged("a part is missing")),
            };
            let (part, length) = frame::part(&value).ok_or(ReadError::Damaged("a checksum fails"))?;
            if part.sequence != sequence || part.part != at || length != value.len() {
                return Err(ReadError::Damaged("a part stands in another's place"));
            }
            parts = part.parts;
            record.extend_from_slice(part.payload);
            at += 1;
        }
        Ok(record)
    }

    /// The id that the names say this sequence number has.
    pub fn name(&self, sequence: u64) -> Option<Id> {
        let value = guarded(|| self.database.get(key(b'i', sequence))).ok()??;
        let (named, id) = frame::named(&value)?;
        (named == sequence).then_some(id)
    }

    /// Whether this sequence number is known to be lost, and its id where that is known too.
    pub fn lost(&self, sequence: u64) -> Option<Option<Id>> {
        let value = guarded(|| self.database.get(key(b'd', sequence))).ok()??;
        Some(value.as_ref().try_into().ok())
    }

    /// Whether this game was deleted.
    pub fn deleted(&self, sequence: u64) -> bool {
        matches!(guarded(|| self.database.get(key(b'x', sequence))), Ok(Some(_)))
    }

    /// The ledger as of the last batch; `None` where there was no batch or it cannot be read.
    pub fn ledger(&self) -> Option<Ledger> {
        let value = guarded(|| self.database.get(b"l")).ok()??;
        Ledger::unpack(&value).map(|(ledger, _)| ledger)
    }

    /// Where the volume lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn key(kind: u8, sequence: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&sequence.to_be_bytes());
    key
}

fn part_key(sequence: u64, part: u16) -> [u8; 11] {
    let mut key = [b'g'; 11];
    key[1..9].copy_from_slice(&sequence.to_be_bytes());
    key[9..].copy_from_slice(&part.to_be_bytes());
    key
}

fn io_error(error: io::Error) -> VolumeError {
    VolumeError::Broken(error.to_string())
}

/// Runs a call into sled; its panics become errors.
fn guarded<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, VolumeError> {
    contain(call)
        .map_err(VolumeError::Panic)?
        .map_err(|error| VolumeError::Broken(error.to_string()))
}
