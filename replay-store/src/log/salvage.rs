//! Finding games in a database's files without the database.
//!
//! sled 0.34 drops what follows a damaged message up to the end of its 512 KiB segment, panics where a page has
//! lost its base, and cuts off the newest segments where the end of the file is torn; none of it is
//! reported. But its messages hold the values as they were written, and every value here is a frame
//! that says what it is and carries a checksum. So all that is whole can be found by looking at the raw bytes.

use std::{collections::BTreeMap, io, path::Path};

use crate::{
    log::files::{Files, OpenFile},
    log::frame::{self, Id},
};

/// Files are read in pieces of this size.
const PIECE: usize = 4 << 20;
/// Longest frame, and so how much of a piece is looked at again with the next.
const OVERLAP: usize = frame::PART_BYTES + 64;

/// A part, and how many its game has.
type Found = (u16, Box<[u8]>);

/// What was found: whole frames only.
#[derive(Debug, Default)]
pub struct Salvage {
    /// By sequence number and part.
    parts: BTreeMap<(u64, u16), Found>,
    names: BTreeMap<u64, Id>,
}

impl Salvage {
    /// Looks through every file below `folder`, for games from sequence number `first` on.
    ///
    /// Memory: at most the games' own bytes, once.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn scan(files: &dyn Files, folder: &Path, first: u64) -> io::Result<Self> {
        let mut salvage = Self::default();
        salvage.scan_folder(files, folder, first)?;
        Ok(salvage)
    }

    fn scan_folder(&mut self, files: &dyn Files, folder: &Path, first: u64) -> io::Result<()> {
        for entry in files.list(folder)? {
            if entry.is_folder {
                self.scan_folder(files, &entry.path, first)?;
            } else {
                self.scan_file(files.open(&entry.path, false)?.as_ref(), first)?;
            }
        }
        Ok(())
    }

    fn scan_file(&mut self, file: &dyn OpenFile, first: u64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(PIECE + OVERLAP);
        let mut offset = 0;
        loop {
            let kept = bytes.len();
            bytes.resize(kept + PIECE, 0);
            let mut filled = kept;
            while filled < bytes.len() {
                match file.read_at(&mut bytes[filled..], offset)? {
                    0 => break,
                    read => {
                        filled += read;
                        offset += read as u64;
                    }
                }
            }
            bytes.truncate(filled);
            self.scan_bytes(&bytes, first);
            if filled == kept {
                return Ok(());
            }
            let keep = bytes.len().min(OVERLAP);
            bytes.drain(..bytes.len() - keep);
        }
    }

    fn scan_bytes(&mut self, bytes: &[u8], first: u64) {
        // Both magics begin with these two letters. What lies inside a whole frame is that frame's own
        // affair; what only looks like a frame's beginning hides nothing.
        let mut done = 0;
        for at in memchr::memmem::find_iter(bytes, b"Mn") {
            if at < done {
                continue;
            }
            let rest = &bytes[at..];
            if let Some((part, length)) = frame::part(rest) {
                done = at + length;
                if part.sequence >= first {
                    self.parts
                        .insert((part.sequence, part.part), (part.parts, part.payload.into()));
                }
            } else if let Some((sequence, id)) = frame::named(rest)
                && sequence >= first
            {
                self.names.insert(sequence, id);
            }
        }
    }

    /// The game's record, where every part of it was found.
    pub fn record(&self, sequence: u64) -> Option<Vec<u8>> {
        let (parts, _) = self.parts.get(&(sequence, 0))?;
        let mut record = Vec::new();
        for at in 0..*parts {
            let (of, payload) = self.parts.get(&(sequence, at))?;
            if of != parts {
                return None;
            }
            record.extend_from_slice(payload);
        }
        Some(record)
    }

    /// The game's id, where its name was found.
    pub fn name(&self, sequence: u64) -> Option<Id> {
        self.names.get(&sequence).copied()
    }

    /// One beyond the highest sequence number of which anything was found; 0 where nothing was.
    pub fn end(&self) -> u64 {
        let part = self
            .parts
            .last_key_value()
            .map_or(0, |((sequence, _), _)| sequence + 1);
        let name = self
            .names
            .last_key_value()
            .map_or(0, |(sequence, _)| sequence + 1);
        part.max(name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        log::files::Real,
        log::ledger::Ledger,
        log::volume::{Commit, Engine, Entry, Volume},
    };

    #[test]
    fn every_game_is_found_in_the_raw_files() {
        let folder = tempfile::tempdir().unwrap();
        let files: Arc<dyn Files> = Arc::new(Real);
        let volume = Volume::open(&files, folder.path(), 5, Engine::Sled).unwrap();
        let entries: Vec<Entry> = (5..60)
            .map(|sequence| Entry {
                sequence,
                id: [sequence as u8; 16],
                record: vec![sequence as u8; sequence as usize * 500],
            })
            .collect();
        for chunk in entries.chunks(3) {
            volume
                .commit(Commit {
                    entries: chunk,
                    lost: &[],
                    deleted: &[],
                    ledger: &Ledger::new(),
                })
                .unwrap();
        }
        let salvage = Salvage::scan(&Real, folder.path(), 6).unwrap();
        assert_eq!(salvage.record(5), None);
        assert_eq!(salvage.end(), 60);
        for entry in &entries[1..] {
            assert_eq!(salvage.record(entry.sequence).as_ref(), Some(&entry.record));
            assert_eq!(salvage.name(entry.sequence), Some(entry.id));
        }
    }

    #[test]
    fn frames_across_pieces_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let record = vec![9; 6000];
        let frame = frame::split(3, &record).unwrap().remove(0);
        for before in [0, PIECE - 100, PIECE - 1, PIECE, PIECE + 7] {
            let mut bytes = vec![b'M'; before];
            bytes.extend_from_slice(&frame);
            let mut salvage = Salvage::default();
            std::fs::write(folder.path().join("file"), &bytes).unwrap();
            let file = Real.open(&folder.path().join("file"), false).unwrap();
            salvage.scan_file(file.as_ref(), 0).unwrap();
            assert_eq!(salvage.record(3).as_ref(), Some(&record), "{before} bytes before");
        }
    }
}
