//! A volume: one sled database holding the games of a run of sequence numbers.
//!
//! | key | value |
//! |---|---|
//! | `g` · sequence · part | a framed part of the game's record |
//! | `i` · sequence | the game's framed name, a second witness that it was here |
//! | `d` · sequence | the game is known to be lost (its id, where that is known) |
//! | `l` | the ledger as of the last batch |
//!
//! A volume is only ever appended to, and removed as a whole once its games are retired. That is not for
//! taste: in a database that is deleted from at one end and inserted into at the other, sled 0.34 never
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

use crate::{
    frame::{self, Id},
    ledger::Ledger,
};

/// sled's segment: small volumes stay small, and a leaf of [`frame::PART_BYTES`] parts stays inside.
const SEGMENT_BYTES: usize = 512 * 1024;

/// sled's own page cache, for each volume. Decoded games have a better one ([`crate::cache`]).
const PAGE_CACHE_BYTES: u64 = 4 * 1024 * 1024;

/// How long a database that this process has just closed may take to let go of its lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// What a database did instead of its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// sled reported an error, or the file system below it did.
    #[error("{0}")]
    Database(String),
    /// sled panicked.
    #[error("the database panicked: {0}")]
    Panic(String),
    /// The record is longer than a game may be.
    #[error("a record of {0} bytes is too long")]
    TooLong(usize),
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
    /// The database failed.
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

/// An open volume.
#[derive(Debug)]
pub struct Volume {
    /// The first sequence number that belongs to it.
    pub first: u64,
    folder: PathBuf,
    database: sled::Db,
    file: File,
}

impl Volume {
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
                Err(VolumeError::Database(message))
                    if message.contains("could not acquire lock") && began.elapsed() < LOCK_PATIENCE =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        let file = File::open(folder.join("db")).map_err(io_error)?;
        Ok(Self {
            first,
            folder: folder.into(),
            database,
            file,
        })
    }

    /// Writes games, their names, the losses, and the ledger in one atomic batch; all of it is durable when this returns.
    ///
    /// # Errors
    /// [`VolumeError`]; nothing may be assumed of the batch then, and the volume must not be written to again.
    pub fn commit(
        &self,
        entries: &[Entry],
        lost: &[(u64, Option<Id>)],
        ledger: &Ledger,
    ) -> Result<(), VolumeError> {
        let mut batch = sled::Batch::default();
        for entry in entries {
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
        for (sequence, id) in lost {
            batch.insert(
                &key(b'd', *sequence),
                id.as_ref().map_or(&[][..], |id| id.as_slice()),
            );
        }
        batch.insert(b"l", ledger.pack(0).as_slice());
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

    /// The ledger as of the last batch; `None` where there was no batch or it cannot be read.
    pub fn ledger(&self) -> Option<Ledger> {
        let value = guarded(|| self.database.get(b"l")).ok()??;
        Ledger::unpack(&value).map(|(ledger, _)| ledger)
    }

    /// Where the volume lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Overwrites the framed part of a game, for tests that damage what is stored.
    #[cfg(test)]
    pub fn damage(&self, sequence: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let key = part_key(sequence, 0);
        let mut value = self.database.get(key).unwrap().unwrap().to_vec();
        change(&mut value);
        self.database.insert(key, value).unwrap();
        self.database.flush().unwrap();
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
    VolumeError::Database(error.to_string())
}

/// Runs a call into sled; its panics become errors.
fn guarded<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, VolumeError> {
    contain(call)
        .map_err(VolumeError::Panic)?
        .map_err(|error| VolumeError::Database(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64, bytes: usize) -> Entry {
        Entry {
            sequence,
            id: [sequence as u8; 16],
            record: (0..bytes).map(|at| (at as u64 * sequence) as u8).collect(),
        }
    }

    #[test]
    fn what_is_committed_is_there_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let ledger = Ledger {
            games_inserted: 3,
            ..Ledger::new()
        };
        let entries = [entry(7, 100), entry(8, 30_000), entry(9, 0)];
        let volume = Volume::open(&path, 7).unwrap();
        assert_eq!(volume.ledger(), None);
        volume
            .commit(&entries, &[(10, None), (11, Some([3; 16]))], &ledger)
            .unwrap();
        drop(volume);
        let volume = Volume::open(&path, 7).unwrap();
        for entry in &entries {
            assert_eq!(volume.read(entry.sequence).unwrap(), entry.record);
            assert_eq!(volume.name(entry.sequence), Some(entry.id));
            assert_eq!(volume.lost(entry.sequence), None);
        }
        assert_eq!(volume.read(10), Err(ReadError::Missing));
        assert_eq!(volume.lost(10), Some(None));
        assert_eq!(volume.lost(11), Some(Some([3; 16])));
        assert_eq!(volume.ledger(), Some(ledger));
    }

    #[test]
    fn a_damaged_value_costs_only_its_game() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::open(folder.path(), 1).unwrap();
        let entries: Vec<Entry> = (1..40).map(|sequence| entry(sequence, 500)).collect();
        volume.commit(&entries, &[], &Ledger::new()).unwrap();
        volume.damage(17, |value| value[200] ^= 4);
        for entry in &entries {
            let read = volume.read(entry.sequence);
            if entry.sequence == 17 {
                assert_eq!(read, Err(ReadError::Damaged("a checksum fails")));
            } else {
                assert_eq!(read.unwrap(), entry.record);
            }
        }
    }

    #[test]
    fn leaves_of_long_games_get_no_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Volume::open(folder.path(), 1).unwrap();
        for sequence in 1..30 {
            volume
                .commit(&[entry(sequence, 100_000)], &[], &Ledger::new())
                .unwrap();
        }
        assert_eq!(fs::read_dir(folder.path().join("blobs")).unwrap().count(), 0);
    }
}
