//! A segment log: one file of checksummed frames, and an index of it in memory.
//!
//! ```text
//! file    = commit …
//! commit  = (part … name)… lost … deleted … ledger · seal     frames: [`crate::log::frame`]
//! ledger  = [`Ledger::pack`]
//! ```
//!
//! A commit is written in one piece at the end and synced; its games are acknowledged after that. Opening reads the file
//! through: what fails its checksum is stepped over by looking for the next frame that does not, so damage costs the
//! frames it hit and nothing behind them, and the end that a loss of power tore off is written over by the next commit. A
//! ledger counts only where its seal says that the whole commit before it was written: a disk may have kept the end of a
//! commit and not its beginning, and nobody was told of those games.
//! A full disk undoes the commit that it interrupted: the file is cut off where it stood.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

use super::{Commit, ReadError, VolumeError};
use crate::{
    log::files::{Files, OpenFile},
    log::frame::{self, Id},
    log::ledger::{LEDGER_BYTES, Ledger},
};

/// The log's name in its volume's folder.
pub const FILE: &str = "games.log";

/// An open log.
#[derive(Debug)]
pub struct Log {
    /// The first sequence number that belongs to it.
    pub first: u64,
    folder: PathBuf,
    file: Box<dyn OpenFile>,
    index: RwLock<Index>,
    /// Where the next commit begins; held while one is written.
    end: Mutex<u64>,
}

/// Where what is.
#[derive(Debug, Default)]
struct Index {
    /// By sequence number and part: where its payload's frame begins, how long it is, and of how many it is one.
    parts: BTreeMap<(u64, u16), Place>,
    names: BTreeMap<u64, Id>,
    lost: BTreeMap<u64, Option<Id>>,
    deleted: BTreeSet<u64>,
    ledger: Option<Ledger>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    length: u32,
    parts: u16,
}

impl Index {
    /// Takes what a run of bytes that begins at `offset` of the file holds; gives one beyond the last whole frame.
    fn take(&mut self, bytes: &[u8], offset: u64) -> usize {
        let mut done = 0;
        let mut ledger = None;
        // Every frame begins with these two letters.
        for at in memchr::memmem::find_iter(bytes, b"Mn") {
            if at < done {
                continue;
            }
            let rest = &bytes[at..];
            let length = if let Some((part, length)) = frame::part(rest) {
                let place = Place {
                    offset: offset + at as u64,
                    length: length as u32,
                    parts: part.parts,
                };
                self.parts.insert((part.sequence, part.part), place);
                length
            } else if let Some((sequence, id)) = frame::named(rest) {
                self.names.insert(sequence, id);
                frame::NAME_BYTES
            } else if let Some((sequence, id)) = frame::lost(rest) {
                self.lost.insert(sequence, id);
                frame::LOST_BYTES
            } else if let Some(sequence) = frame::deleted(rest) {
                self.deleted.insert(sequence);
                frame::DELETED_BYTES
            } else if let Some((found, _)) = Ledger::unpack(rest) {
                ledger = Some((at, found));
                LEDGER_BYTES
            } else if let Some(begin) = frame::sealed(bytes, at) {
                if let (Some(begin), Some((place, found))) = (begin, ledger)
                    && place >= begin
                {
                    self.ledger = Some(found);
                }
                frame::SEAL_BYTES
            } else {
                continue;
            };
            done = at + length;
        }
        done
    }
}

impl Log {
    /// Opens the log in `folder`, or makes it, durably.
    ///
    /// # Errors
    /// [`VolumeError`] with what the file system says.
    pub fn open(files: &Arc<dyn Files>, folder: &Path, first: u64) -> Result<Self, VolumeError> {
        files.create_folder(folder).map_err(VolumeError::io)?;
        let path = folder.join(FILE);
        let file = files.open(&path, true).map_err(VolumeError::io)?;
        let mut index = Index::default();
        // A volume is bounded (`settings::MAX_VOLUME_BYTES`), and so is this.
        let bytes = files.read(&path).map_err(VolumeError::io)?;
        let end = index.take(&bytes, 0) as u64;
        // A process that was killed may have left behind what it had written and not synced. It counts from here on.
        file.sync().map_err(VolumeError::io)?;
        if end == 0 {
            // It may be new, and its name not on the disk yet.
            files.sync_folder(folder).map_err(VolumeError::io)?;
            if let Some(parent) = folder.parent() {
                files.sync_folder(parent).map_err(VolumeError::io)?;
            }
        }
        Ok(Self {
            first,
            folder: folder.into(),
            file,
            index: RwLock::new(index),
            end: Mutex::new(end),
        })
    }

    /// As [`super::Volume::commit`].
    ///
    /// # Errors
    /// As there.
    pub fn commit(&self, commit: Commit<'_>) -> Result<(), VolumeError> {
        let bytes = packed(commit)?;
        let mut end = self.end.lock();
        if let Err(error) = self.file.write_at(&bytes, *end) {
            let error = VolumeError::io(error);
            if error != VolumeError::Full {
                return Err(error);
            }
            // What was written of it must neither stay nor take room.
            self.file
                .set_len(*end)
                .map_err(|error| VolumeError::Broken(error.to_string()))?;
            return Err(VolumeError::Full);
        }
        // Room that is missed only now is no full disk any more: nobody knows what has been written. Whoever opens the log
        // next must not find in memory what the disk does not have.
        if let Err(error) = self.file.sync() {
            let undone = self.file.set_len(*end);
            let left = undone.map_or_else(|error| format!(", nor be undone: {error}"), |()| String::new());
            return Err(VolumeError::Broken(format!(
                "it cannot be made durable: {error}{left}"
            )));
        }
        self.index.write().take(&bytes, *end);
        *end += bytes.len() as u64;
        Ok(())
    }

    /// As [`super::Volume::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        let places: Vec<Place> = {
            let index = self.index.read();
            index
                .parts
                .range((sequence, 0)..=(sequence, u16::MAX))
                .map(|(_, place)| *place)
                .collect()
        };
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return Err(ReadError::Missing);
        };
        if places.len() != usize::from(first.parts) {
            return Err(ReadError::Damaged("a part is missing"));
        }
        // The parts of a game stand one behind the other, so that one read does.
        let end = last.offset + u64::from(last.length);
        let length = end
            .checked_sub(first.offset)
            .filter(|&length| length <= frame::MAX_GAME_BYTES);
        let Some(length) = length else {
            return Err(ReadError::Damaged("a part stands in another's place"));
        };
        let mut bytes = vec![0; length as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            let read = self
                .file
                .read_at(&mut bytes[filled..], first.offset + filled as u64)
                .map_err(VolumeError::io)?;
            if read == 0 {
                return Err(ReadError::Damaged("the file ends early"));
            }
            filled += read;
        }
        let mut record = Vec::with_capacity(bytes.len());
        for (number, place) in places.iter().enumerate() {
            let begin = (place.offset - first.offset) as usize;
            let found = bytes.get(begin..).and_then(frame::part);
            let (part, _) = found.ok_or(ReadError::Damaged("a checksum fails"))?;
            if part.sequence != sequence || usize::from(part.part) != number {
                return Err(ReadError::Damaged("a part stands in another's place"));
            }
            record.extend_from_slice(part.payload);
        }
        Ok(record)
    }

    /// As [`super::Volume::name`].
    pub fn name(&self, sequence: u64) -> Option<Id> {
        self.index.read().names.get(&sequence).copied()
    }

    /// As [`super::Volume::lost`].
    pub fn lost(&self, sequence: u64) -> Option<Option<Id>> {
        self.index.read().lost.get(&sequence).copied()
    }

    /// As [`super::Volume::deleted`].
    pub fn deleted(&self, sequence: u64) -> bool {
        self.index.read().deleted.contains(&sequence)
    }

    /// As [`super::Volume::ledger`].
    pub fn ledger(&self) -> Option<Ledger> {
        self.index.read().ledger
    }

    /// One beyond the highest sequence number of which anything was found; 0 where nothing was.
    pub fn end(&self) -> u64 {
        let index = self.index.read();
        let part = index
            .parts
            .last_key_value()
            .map_or(0, |((sequence, _), _)| sequence + 1);
        let name = index
            .names
            .last_key_value()
            .map_or(0, |(sequence, _)| sequence + 1);
        part.max(name)
    }

    /// Where the volume lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn packed(commit: Commit<'_>) -> Result<Vec<u8>, VolumeError> {
    let size: usize = commit.entries.iter().map(|entry| entry.record.len() + 256).sum();
    let mut bytes = Vec::with_capacity(size + LEDGER_BYTES);
    for entry in commit.entries {
        frame::put(entry.sequence, &entry.record, &mut bytes)
            .ok_or(VolumeError::TooLong(entry.record.len()))?;
        bytes.extend_from_slice(&frame::name(entry.sequence, &entry.id));
    }
    for (sequence, id) in commit.lost {
        bytes.extend_from_slice(&frame::put_lost(*sequence, id.as_ref()));
    }
    for sequence in commit.deleted {
        bytes.extend_from_slice(&frame::put_deleted(*sequence));
    }
    bytes.extend_from_slice(&commit.ledger.pack(0));
    let seal = frame::seal(&bytes);
    bytes.extend_from_slice(&seal);
    Ok(bytes)
}
