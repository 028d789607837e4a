//! A volume: one segment of the log. It contains the games of a range of sequence numbers. Data is only appended to a volume, and a
//! volume is removed as a whole.
//!
//! ```text
//! file    = commit …
//! commit  = (part … name)… lost … deleted … ledger · seal     frames: [`crate::log::frame`]
//! ledger  = [`Ledger::pack`]
//! ```
//!
//! A commit is written by one write at the end of the file and synced; its games are acknowledged after that. When a volume is opened,
//! bytes that fail their checksum are skipped by searching for the next valid frame, so that damage loses only the frames that it hits.
//! An incomplete commit at the end (after a loss of power) is overwritten by the next commit. A ledger counts only if its seal proves
//! that the whole commit before it was written: a disk may have kept the end of a commit and lost its beginning, and the games of such a
//! commit were never acknowledged. If the disk becomes full during a commit, the file is truncated to its length before that commit.
//!
//! With a [`Known`] from the index, opening reads only the part of the file after [`Known::position`].

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};

use crate::{
    error::{ReadError, VolumeError},
    formats::{self, Formats},
    log::{
        files::{self, Files, OpenFile, ReadOnly},
        frame::{self, Id, LEDGER_BYTES, Magic},
        ledger::Ledger,
    },
};

/// File name of the segment in the volume's folder.
pub const FILE: &str = "games.log";

/// Number of bytes before a position that identify the log's contents up to it.
const CHECK_BYTES: u64 = 32;

/// A game to be written.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Sequence number.
    pub sequence: u64,
    /// Game id.
    pub id: Id,
    /// Packed record ([`crate::record`]).
    pub record: Vec<u8>,
}

/// The contents of one write. All of it becomes durable together.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Games.
    pub entries: &'a [Entry],
    /// Sequence numbers of lost games, with their ids if these are known.
    pub lost: &'a [(u64, Option<Id>)],
    /// Sequence numbers of deleted games of this volume.
    pub deleted: &'a [u64],
    /// The ledger as of this commit.
    pub ledger: &'a Ledger,
}

/// Place of a whole game in the file. The frames of its parts are adjacent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the first part's frame, in bytes.
    pub offset: u64,
    /// Total length of the frames in bytes.
    pub length: u32,
    /// Number of parts.
    pub parts: u16,
}

/// A position at the end of a commit, with the bytes before it. These bytes show whether a file is the one that the position was taken
/// from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The bytes right before the position, at most 32.
    pub check: Vec<u8>,
}

/// The contents of a volume up to a position, as its index recorded them.
#[derive(Debug, Default)]
pub struct Known {
    /// Position up to which the other fields are complete.
    pub position: Position,
    /// Whole games by sequence number, ascending.
    pub games: Vec<(u64, Id, Extent)>,
    /// Lost games.
    pub lost: Vec<(u64, Option<Id>)>,
    /// Deleted games.
    pub deleted: Vec<u64>,
    /// The newest sealed ledger.
    pub ledger: Option<Ledger>,
}

/// A consistent snapshot of the contents of a volume, for its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// End of the last commit.
    pub position: Position,
    /// One more than the highest sequence number found in the volume; the volume's first number if it is empty.
    pub next: u64,
    /// The newest sealed ledger.
    pub ledger: Option<Ledger>,
    /// Number of lost games.
    pub lost: usize,
    /// Number of deleted games.
    pub deleted: usize,
}

/// An open volume.
#[derive(Debug)]
pub struct Volume {
    first: u64,
    folder: PathBuf,
    file: Box<dyn OpenFile>,
    contents: RwLock<Contents>,
    /// End of the last commit; locked while the next one is written.
    end: Mutex<Position>,
}

/// Places of the games in the file, and the other contents of its frames.
#[derive(Debug, Default)]
struct Contents {
    games: BTreeMap<u64, Extent>,
    names: BTreeMap<u64, Id>,
    lost: BTreeMap<u64, Option<Id>>,
    deleted: BTreeSet<u64>,
    ledger: Option<Ledger>,
    next: u64,
}

impl Contents {
    fn new(first: u64, known: Option<Known>) -> Self {
        let mut contents = Self {
            next: first,
            ..Self::default()
        };
        if let Some(known) = known {
            contents.names = known
                .games
                .iter()
                .map(|&(sequence, id, _)| (sequence, id))
                .collect();
            contents.games = known
                .games
                .into_iter()
                .map(|(sequence, _, extent)| (sequence, extent))
                .collect();
            contents.lost = known.lost.into_iter().collect();
            contents.deleted = known.deleted.into_iter().collect();
            contents.ledger = known.ledger;
            let last = contents.names.last_key_value().map(|(sequence, _)| *sequence);
            let lost = contents.lost.last_key_value().map(|(sequence, _)| *sequence);
            contents.next = last.max(lost).map_or(first, |sequence| sequence + 1).max(first);
        }
        contents
    }

    /// Reads the frames in `bytes`, which begin at `offset` of the file. Returns the end of the last whole frame, counted from the
    /// beginning of `bytes`.
    ///
    /// # Errors
    /// The magic of an intact frame that is not among `known`.
    fn take(&mut self, bytes: &[u8], offset: u64, known: &[Magic]) -> Result<usize, Magic> {
        let mut done = 0;
        let mut ledger = None;
        // The game whose parts are being read: its sequence number, its place so far, and the number of parts expected.
        let mut reading: Option<(u64, Extent, u16)> = None;
        // Every frame begins with these two bytes.
        for at in memchr::memmem::find_iter(bytes, b"Mn") {
            if at < done {
                continue;
            }
            let rest = &bytes[at..];
            if let Some(newer) = frame::unknown(rest, known) {
                return Err(newer);
            }
            let length = if let Some((part, length)) = frame::decode_part(rest) {
                let place = offset + at as u64;
                reading = match reading.take() {
                    _ if part.part == 0 => {
                        let extent = Extent {
                            offset: place,
                            length: length as u32,
                            parts: part.parts,
                        };
                        Some((part.sequence, extent, 1))
                    }
                    Some((sequence, extent, parts))
                        if sequence == part.sequence
                            && parts == part.part
                            && extent.parts == part.parts
                            && extent.offset + u64::from(extent.length) == place =>
                    {
                        let length = extent.length + length as u32;
                        Some((sequence, Extent { length, ..extent }, parts + 1))
                    }
                    _ => None,
                };
                if let Some((sequence, extent, parts)) = reading
                    && parts == extent.parts
                {
                    self.games.insert(sequence, extent);
                }
                self.next = self.next.max(part.sequence + 1);
                length
            } else if let Some((sequence, id)) = frame::decode_name(rest) {
                self.names.insert(sequence, id);
                self.next = self.next.max(sequence + 1);
                frame::NAME_BYTES
            } else if let Some((sequence, id)) = frame::decode_lost(rest) {
                self.lost.insert(sequence, id);
                self.next = self.next.max(sequence + 1);
                frame::LOST_BYTES
            } else if let Some(sequence) = frame::decode_deleted(rest) {
                self.deleted.insert(sequence);
                frame::DELETED_BYTES
            } else if let Some((found, _)) = Ledger::unpack(rest) {
                ledger = Some((at, found));
                LEDGER_BYTES
            } else if let Some(begin) = frame::decode_seal(bytes, at) {
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
        Ok(done)
    }
}

impl Volume {
    /// Opens the volume in `folder` for writing, or creates it durably. See [`Volume::read_only`].
    ///
    /// # Errors
    /// [`VolumeError`] with the file system's message. A damaged file is not an error and is left unchanged.
    pub fn open(
        files: &Arc<dyn Files>,
        folder: &Path,
        first: u64,
        known: Option<Known>,
    ) -> Result<(Self, bool), VolumeError> {
        let (mut volume, is_known) = Self::read_only(files, folder, first, known, frame::KNOWN)?;
        volume.make_writable(files.as_ref(), folder)?;
        Ok((volume, is_known))
    }

    /// Opens the volume in `folder` without changing anything. A missing file is an empty volume. `known` are the contents that the index
    /// recorded; they are used if the file still has the bytes at the index's position. The result says whether they were used. `frames`
    /// are the frames that the build reads.
    ///
    /// # Errors
    /// [`VolumeError::Newer`] if a newer build wrote to the volume, otherwise the file system's error.
    pub fn read_only(
        files: &Arc<dyn Files>,
        folder: &Path,
        first: u64,
        known: Option<Known>,
        frames: &[Magic],
    ) -> Result<(Self, bool), VolumeError> {
        let file = ReadOnly(Arc::clone(files))
            .open(&folder.join(FILE), true)
            .map_err(files::volume_error)?;
        let length = file.length().map_err(files::volume_error)?;
        let known = match known {
            Some(known)
                if is_from(file.as_ref(), length, &known.position).map_err(files::volume_error)? =>
            {
                Some(known)
            }
            _ => None,
        };
        let is_known = known.is_some();
        let start = known.as_ref().map_or(0, |known| known.position.offset);
        let mut contents = Contents::new(first, known);
        // The length of a volume is limited (`settings::MAX_VOLUME_BYTES`), and so is the memory of these bytes.
        let bytes = read_range(file.as_ref(), start, length).map_err(files::volume_error)?;
        let taken = contents
            .take(&bytes, start, frames)
            .map_err(|magic| VolumeError::Newer(format!("frame {}", formats::name(magic))))?;
        let end = start + taken as u64;
        drop(bytes);
        let check =
            read_range(file.as_ref(), end.saturating_sub(CHECK_BYTES), end).map_err(files::volume_error)?;
        let volume = Self {
            first,
            folder: folder.into(),
            file,
            contents: RwLock::new(contents),
            end: Mutex::new(Position { offset: end, check }),
        };
        Ok((volume, is_known))
    }

    /// Opens the file of a volume for writing, or creates it durably in `folder`.
    ///
    /// # Errors
    /// [`VolumeError`] with the file system's message.
    pub fn make_writable(&mut self, files: &dyn Files, folder: &Path) -> Result<(), VolumeError> {
        files.create_folder(folder).map_err(files::volume_error)?;
        self.folder = folder.into();
        self.file = files
            .open(&folder.join(FILE), true)
            .map_err(files::volume_error)?;
        // A killed process may have left bytes that it wrote and did not sync. They are used from here on, so they must be durable.
        self.file.sync().map_err(files::volume_error)?;
        if self.end.get_mut().offset == 0 {
            // The file may be new, so that its name is not durable yet.
            files.sync_folder(folder).map_err(files::volume_error)?;
            if let Some(parent) = folder.parent() {
                files.sync_folder(parent).map_err(files::volume_error)?;
            }
        }
        Ok(())
    }

    /// Writes a commit. All of it is durable when the call returns.
    ///
    /// # Errors
    /// [`VolumeError`]. After [`VolumeError::Full`] the volume is as it was before. After any other error its state is
    /// unknown, and it must not be written to again.
    pub fn commit(&self, commit: Commit<'_>) -> Result<(), VolumeError> {
        let bytes = packed(commit)?;
        let mut end = self.end.lock();
        if let Err(error) = self.file.write_at(&bytes, end.offset) {
            let error = files::volume_error(error);
            if error != VolumeError::Full {
                return Err(error);
            }
            // The part that was written must be removed, because it takes space on the full disk.
            self.file
                .set_len(end.offset)
                .map_err(|error| VolumeError::Broken(error.to_string()))?;
            return Err(VolumeError::Full);
        }
        // A lack of space that is reported only by the sync is not treated as a full disk, because it is unknown what has been written.
        // The next process to open the log must not find data in the page cache that is not on the disk.
        if let Err(error) = self.file.sync() {
            let undone = self.file.set_len(end.offset);
            let left = undone.map_or_else(|error| format!(", nor be undone: {error}"), |()| String::new());
            return Err(VolumeError::Broken(format!(
                "the commit cannot be made durable: {error}{left}"
            )));
        }
        // These frames are this build's own.
        let _ = self.contents.write().take(&bytes, end.offset, frame::KNOWN);
        let check = bytes.len().saturating_sub(CHECK_BYTES as usize);
        *end = Position {
            offset: end.offset + bytes.len() as u64,
            check: bytes[check..].to_vec(),
        };
        Ok(())
    }

    /// Reads a game's record and verifies its checksums.
    ///
    /// # Errors
    /// [`ReadError`]; other games of the volume are not affected.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        let (extent, is_named) = {
            let contents = self.contents.read();
            let extent = contents.games.get(&sequence).copied();
            (extent, contents.names.contains_key(&sequence))
        };
        let extent = match extent {
            Some(extent) => extent,
            None if is_named => return Err(ReadError::Damaged("a part is missing or fails its checksum")),
            None => return Err(ReadError::Missing),
        };
        let end = extent.offset + u64::from(extent.length);
        if u64::from(extent.length) > frame::MAX_GAME_BYTES {
            return Err(ReadError::Damaged("the game is too long"));
        }
        let bytes = read_range(self.file.as_ref(), extent.offset, end).map_err(files::volume_error)?;
        let mut record = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        for number in 0..extent.parts {
            let (part, length) = frame::decode_part(rest).ok_or(ReadError::Damaged("a checksum fails"))?;
            if (part.sequence, part.part) != (sequence, number) {
                return Err(ReadError::Damaged("a part of another game is in its place"));
            }
            record.extend_from_slice(part.payload);
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(record)
    }

    /// Returns the id that the log names for this sequence number.
    pub fn name(&self, sequence: u64) -> Option<Id> {
        self.contents.read().names.get(&sequence).copied()
    }

    /// Returns `Some` if this sequence number is recorded as lost, with the game's id if that is known.
    pub fn lost(&self, sequence: u64) -> Option<Option<Id>> {
        self.contents.read().lost.get(&sequence).copied()
    }

    /// True if this game was deleted.
    pub fn deleted(&self, sequence: u64) -> bool {
        self.contents.read().deleted.contains(&sequence)
    }

    /// Returns the ledger of the last whole commit; `None` if there is none.
    pub fn ledger(&self) -> Option<Ledger> {
        self.contents.read().ledger
    }

    /// Returns one more than the highest sequence number found in the volume; its first number if it is empty.
    pub fn next(&self) -> u64 {
        self.contents.read().next
    }

    /// Returns a consistent snapshot of the volume's contents, for its index.
    pub fn progress(&self) -> Progress {
        let end = self.end.lock();
        let contents = self.contents.read();
        Progress {
            position: end.clone(),
            next: contents.next,
            ledger: contents.ledger,
            lost: contents.lost.len(),
            deleted: contents.deleted.len(),
        }
    }

    /// Returns at most `limit` whole games with sequence numbers from `from` on, in order.
    pub fn games_from(&self, from: u64, limit: usize) -> Vec<(u64, Extent)> {
        let contents = self.contents.read();
        let games = contents.games.range(from..).take(limit);
        games.map(|(sequence, extent)| (*sequence, *extent)).collect()
    }

    /// Returns all lost games.
    pub fn all_lost(&self) -> Vec<(u64, Option<Id>)> {
        let contents = self.contents.read();
        contents
            .lost
            .iter()
            .map(|(sequence, id)| (*sequence, *id))
            .collect()
    }

    /// Returns the sequence numbers of all deleted games.
    pub fn all_deleted(&self) -> Vec<u64> {
        self.contents.read().deleted.iter().copied().collect()
    }

    /// Returns the first sequence number that belongs to the volume.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the folder of the volume.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// True if the file contains, right before the position, the bytes that were recorded with the position.
fn is_from(file: &dyn OpenFile, length: u64, position: &Position) -> io::Result<bool> {
    let begin = position.offset.saturating_sub(CHECK_BYTES);
    if position.offset > length || position.check.len() as u64 != position.offset - begin {
        return Ok(false);
    }
    Ok(read_range(file, begin, position.offset)? == position.check)
}

/// Reads the bytes from `begin` up to `end`; fewer if the file ends before.
fn read_range(file: &dyn OpenFile, begin: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; end.saturating_sub(begin) as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        let read = file.read_at(&mut bytes[filled..], begin + filled as u64)?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Number of bytes at the end of a log that [`check_end`] reads.
const END_BYTES: u64 = 256 * 1024;

/// Checks the end of the log in `folder` for frames and records of a newer build, without an index. Every commit ends with a ledger and a
/// seal, so a build that wrote to the log left its frames at the end.
///
/// # Errors
/// [`VolumeError::Newer`], or the file system's error.
pub fn check_end(files: &dyn Files, folder: &Path, formats: &Formats) -> Result<(), VolumeError> {
    let path = folder.join(FILE);
    if !files.exists(&path) {
        return Ok(());
    }
    let file = files.open_to_read(&path).map_err(files::volume_error)?;
    let length = file.length().map_err(files::volume_error)?;
    let bytes = read_range(file.as_ref(), length.saturating_sub(END_BYTES), length);
    let bytes = bytes.map_err(files::volume_error)?;
    let mut contents = Contents::default();
    contents
        .take(&bytes, 0, formats.frames)
        .map_err(|magic| VolumeError::Newer(format!("frame {}", formats::name(magic))))?;
    for extent in contents.games.values() {
        let first = frame::decode_part(bytes.get(extent.offset as usize..).unwrap_or_default());
        let version = first.and_then(|(part, _)| part.payload.first());
        if let Some(version) = version.filter(|version| !formats.records.contains(version)) {
            return Err(VolumeError::Newer(format!("record version {version}")));
        }
    }
    Ok(())
}

fn packed(commit: Commit<'_>) -> Result<Vec<u8>, VolumeError> {
    let size: usize = commit.entries.iter().map(|entry| entry.record.len() + 256).sum();
    let mut bytes = Vec::with_capacity(size + LEDGER_BYTES);
    for entry in commit.entries {
        frame::encode_record(entry.sequence, &entry.record, &mut bytes)
            .ok_or(VolumeError::TooLong(entry.record.len()))?;
        bytes.extend_from_slice(&frame::encode_name(entry.sequence, &entry.id));
    }
    for (sequence, id) in commit.lost {
        bytes.extend_from_slice(&frame::encode_lost(*sequence, id.as_ref()));
    }
    for sequence in commit.deleted {
        bytes.extend_from_slice(&frame::encode_deleted(*sequence));
    }
    bytes.extend_from_slice(&commit.ledger.pack(0));
    let seal = frame::encode_seal(&bytes);
    bytes.extend_from_slice(&seal);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::log::files::Real;

    fn entry(sequence: u64, bytes: usize) -> Entry {
        Entry {
            sequence,
            id: [sequence as u8; 16],
            record: (0..bytes).map(|at| (at as u64 * sequence) as u8).collect(),
        }
    }

    fn open(folder: &Path, known: Option<Known>) -> (Volume, bool) {
        let files: Arc<dyn Files> = Arc::new(Real);
        Volume::open(&files, folder, 1, known).unwrap()
    }

    fn commit(volume: &Volume, entries: &[Entry]) {
        let all = Commit {
            entries,
            lost: &[],
            deleted: &[],
            ledger: &Ledger::new(),
        };
        volume.commit(all).unwrap();
    }

    #[test]
    fn committed_games_are_there_after_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let ledger = Ledger {
            games_inserted: 3,
            ..Ledger::new()
        };
        let entries = [entry(7, 100), entry(8, 30_000), entry(9, 0)];
        let (volume, _) = open(&path, None);
        assert_eq!(volume.ledger(), None);
        volume
            .commit(Commit {
                entries: &entries,
                lost: &[(10, None), (11, Some([3; 16]))],
                deleted: &[8],
                ledger: &ledger,
            })
            .unwrap();
        let progress = volume.progress();
        drop(volume);
        let (volume, _) = open(&path, None);
        assert_eq!(volume.progress(), progress);
        for entry in &entries {
            assert_eq!(volume.read(entry.sequence).unwrap(), entry.record);
            assert_eq!(volume.name(entry.sequence), Some(entry.id));
            assert_eq!(volume.lost(entry.sequence), None);
            assert_eq!(volume.deleted(entry.sequence), entry.sequence == 8);
        }
        assert_eq!(volume.read(10), Err(ReadError::Missing));
        assert_eq!(volume.lost(10), Some(None));
        assert_eq!(volume.lost(11), Some(Some([3; 16])));
        assert_eq!(volume.ledger(), Some(ledger));
        assert_eq!(volume.next(), 12);
    }

    #[test]
    fn known_contents_replace_the_scan_only_for_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, _) = open(folder.path(), None);
        commit(&volume, &[entry(1, 500), entry(2, 20_000)]);
        let known = || Known {
            position: volume.progress().position,
            games: volume
                .games_from(0, 10)
                .into_iter()
                .map(|(sequence, extent)| (sequence, [sequence as u8; 16], extent))
                .collect(),
            ledger: volume.ledger(),
            ..Known::default()
        };
        let early = known();
        commit(&volume, &[entry(3, 700)]);
        let late = known();
        let expected = volume.progress();
        drop(volume);
        for known in [early, late] {
            let offset = known.position.offset;
            let (volume, is_used) = open(folder.path(), Some(known));
            assert!(is_used, "at {offset}");
            assert_eq!(volume.progress(), expected, "at {offset}");
            for (sequence, bytes) in [(1, 500), (2, 20_000), (3, 700)] {
                assert_eq!(volume.read(sequence).unwrap(), entry(sequence, bytes).record);
            }
        }
        let position = |offset, check: u8| Known {
            position: Position {
                offset,
                check: vec![check; 32],
            },
            ..Known::default()
        };
        for other in [position(expected.position.offset, 1), position(1 << 30, 0)] {
            let (volume, is_used) = open(folder.path(), Some(other));
            assert!(!is_used);
            assert_eq!(volume.progress(), expected);
        }
    }

    #[test]
    fn a_damaged_byte_costs_only_its_game() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, _) = open(folder.path(), None);
        let entries: Vec<Entry> = (1..40).map(|sequence| entry(sequence, 500)).collect();
        commit(&volume, &entries);
        // A byte of game 17, found by its frame.
        let path = folder.path().join(FILE);
        let bytes = fs::read(&path).unwrap();
        let frame = frame::encode_parts(17, &entries[16].record).unwrap().remove(0);
        let at = memchr::memmem::find(&bytes, &frame).unwrap();
        let file = Real.open(&path, false).unwrap();
        file.write_at(&[bytes[at + 200] ^ 4], at as u64 + 200).unwrap();
        assert_eq!(volume.read(17), Err(ReadError::Damaged("a checksum fails")));
        drop(volume);
        let (volume, _) = open(folder.path(), None);
        assert!(matches!(volume.read(17), Err(ReadError::Damaged(_))));
        assert_eq!(volume.name(17), Some([17; 16]));
        for entry in entries.iter().filter(|entry| entry.sequence != 17) {
            assert_eq!(volume.read(entry.sequence).unwrap(), entry.record);
        }
    }

    #[test]
    fn the_next_commit_overwrites_a_torn_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let (volume, _) = open(folder.path(), None);
        commit(&volume, &[entry(1, 500), entry(2, 500)]);
        let whole = fs::metadata(&path).unwrap().len();
        commit(&volume, &[entry(3, 20_000)]);
        drop(volume);
        let bytes = fs::read(&path).unwrap();
        for keep in [whole, whole + 1, whole + 9_000] {
            fs::write(&path, &bytes[..keep as usize]).unwrap();
            let (volume, _) = open(folder.path(), None);
            assert!(volume.read(3).is_err(), "{keep} bytes kept");
            commit(&volume, &[entry(4, 100)]);
            drop(volume);
            let (volume, _) = open(folder.path(), None);
            for (sequence, bytes) in [(1, 500), (2, 500), (4, 100)] {
                let record = volume.read(sequence).unwrap();
                assert_eq!(record, entry(sequence, bytes).record, "{keep} bytes kept");
            }
        }
    }
}
