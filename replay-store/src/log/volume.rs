//! A volume: one segment of the log. It contains the games of a range of sequence numbers. Data is only appended to a volume, and a
//! volume is removed as a whole.
//!
//! ```text
//! file    = commit …
//! commit  = (game name)… lost … deleted … ledger · seal      frames: [`crate::log::frame`]
//! ```
//!
//! A commit is written by one write at the end of the file and synced; its games are acknowledged after that. When a volume is opened,
//! bytes that fail their checksum are skipped by searching for the next valid frame, so that damage loses only the frames that it hits.
//! An incomplete commit at the end (after a loss of power) is overwritten by the next commit. A ledger counts only if its seal proves
//! that the whole commit before it was written: a disk may have kept the end of a commit and lost its beginning, and the games of such a
//! commit were never acknowledged. If the disk becomes full during a commit, the file is truncated to its length before that commit.
//!
//! With an [`Indexed`] from the index, opening reads only the part of the file after [`Indexed::position`].

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use durable::frame;
use parking_lot::{Mutex, RwLock};

use crate::{
    error::{ReadError, VolumeError},
    log::{
        files::{self, Files, OpenFile},
        frame::{Content, Id, LEDGER_BYTES, append_seal},
        ledger::Ledger,
    },
    window::catalog::Listed,
};

/// File name of the segment in the volume's folder.
pub const FILE: &str = "games.log";

/// Number of bytes before a position that identify the log's contents up to it.
const CHECK_BYTES: u64 = 32;

/// A game to be written.
#[derive(Clone, Debug)]
pub struct NewGame {
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
    pub entries: &'a [NewGame],
    /// Sequence numbers of lost games, with their ids if these are known.
    pub lost: &'a [(u64, Option<Id>)],
    /// Sequence numbers of deleted games of this volume.
    pub deleted: &'a [u64],
    /// The ledger as of this commit.
    pub ledger: &'a Ledger,
}

/// Place of a game's frame in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the frame in bytes.
    pub offset: u64,
    /// Length of the frame in bytes.
    pub length: u32,
}

/// A position at the end of a commit, with the bytes before it. These bytes show whether a file is the one that the position was taken
/// from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPosition {
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The bytes right before the position, at most 32.
    pub check: Vec<u8>,
}

/// Values of a whole game that the store keeps in memory and in its index.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Sequence number.
    pub sequence: u64,
    /// Game id.
    pub id: Id,
    /// Place in the volume.
    pub extent: Extent,
    /// Number of positions with visit counts.
    pub trainable: u32,
    /// Length of the record in bytes.
    pub bytes: u32,
    /// Values by which the game is listed.
    pub listed: Listed,
}

/// The contents of a volume up to a position, as its index recorded them.
#[derive(Debug, Default)]
pub struct Indexed {
    /// Position up to which the other fields are complete.
    pub position: LogPosition,
    /// Games, deleted ones included, ascending by sequence number.
    pub rows: Vec<Row>,
    /// Lost games.
    pub lost: Vec<(u64, Option<Id>)>,
    /// Deleted games, with their ids if these are known.
    pub deleted: Vec<(u64, Option<Id>)>,
    /// The newest sealed ledger.
    pub ledger: Option<Ledger>,
    /// Sequence number below which the index has all games.
    pub next: u64,
}

/// An open volume.
#[derive(Debug)]
pub struct Volume {
    first: u64,
    folder: PathBuf,
    /// `None` if the file does not exist yet.
    file: Option<Box<dyn OpenFile>>,
    contents: RwLock<Contents>,
    /// End of the last commit; locked while the next one is written.
    end: Mutex<LogPosition>,
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
    fn new(first: u64, indexed: Option<&Indexed>) -> Self {
        let Some(indexed) = indexed else {
            return Self {
                next: first,
                ..Self::default()
            };
        };
        let rows = indexed.rows.iter();
        let names = rows.clone().map(|row| (row.sequence, Some(row.id)));
        Self {
            games: rows.map(|row| (row.sequence, row.extent)).collect(),
            names: names
                .chain(indexed.deleted.iter().copied())
                .filter_map(|(sequence, id)| Some((sequence, id?)))
                .collect(),
            lost: indexed.lost.iter().copied().collect(),
            deleted: indexed.deleted.iter().map(|(sequence, _)| *sequence).collect(),
            ledger: indexed.ledger,
            next: indexed.next.max(first),
        }
    }

    /// Reads the frames in `bytes`, which begin at `offset` of the file. Returns the end of the last whole frame, counted from the
    /// beginning of `bytes`.
    ///
    /// # Errors
    /// [`VolumeError::Newer`] for an intact frame that this build does not know.
    fn take(&mut self, bytes: &[u8], offset: u64) -> Result<usize, VolumeError> {
        let mut done = 0;
        let mut ledger = None;
        for (range, found) in frame::ranges(bytes) {
            let Ok(found) = found else { continue };
            done = range.end;
            let content =
                Content::of(&found).ok_or_else(|| VolumeError::Newer(format!("frame {}", found.name())))?;
            match content {
                Content::Game(sequence, _) => {
                    let extent = Extent {
                        offset: offset + range.start as u64,
                        length: range.len() as u32,
                    };
                    self.games.insert(sequence, extent);
                    self.next = self.next.max(sequence + 1);
                }
                Content::Name(sequence, id) => {
                    self.names.insert(sequence, id);
                    self.next = self.next.max(sequence + 1);
                }
                Content::Lost(sequence, id) => {
                    self.lost.insert(sequence, id);
                    self.next = self.next.max(sequence + 1);
                }
                Content::Deleted(sequence) => {
                    self.deleted.insert(sequence);
                }
                Content::Ledger(found) => ledger = Some((range.start, found)),
                Content::Seal { length, crc } => {
                    let begin = range.start.checked_sub(length as usize);
                    let sealed =
                        begin.filter(|&begin| frame::checksum(&[], &bytes[begin..range.start]) == crc);
                    if let (Some(begin), Some((place, found))) = (sealed, ledger)
                        && place >= begin
                    {
                        self.ledger = Some(found);
                    }
                }
            }
        }
        Ok(done)
    }
}

impl Volume {
    /// Opens the volume in `folder` for writing, or creates it durably. See [`Volume::read_only`].
    ///
    /// # Errors
    /// [`VolumeError`] with the file system's message. A damaged file is not an error and is left unchanged.
    pub fn open(files: &dyn Files, folder: &Path, first: u64) -> Result<Self, VolumeError> {
        let (mut volume, _) = Self::read_only(files, folder, first, None)?;
        volume.make_writable(files).map_err(files::volume_error)?;
        Ok(volume)
    }

    /// Opens the volume in `folder` without changing anything. A missing file is an empty volume. `indexed` are the contents that the
    /// index recorded. They are used, and returned, if the file still has the bytes at the index's position.
    ///
    /// # Errors
    /// [`VolumeError::Newer`] if a newer build wrote to the volume, otherwise the file system's error.
    pub fn read_only(
        files: &dyn Files,
        folder: &Path,
        first: u64,
        indexed: Option<Indexed>,
    ) -> Result<(Self, Option<Indexed>), VolumeError> {
        let file = match files.open_to_read(&folder.join(FILE)) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(files::volume_error(error)),
        };
        let length = file.as_ref().map_or(Ok(0), |file| file.length());
        let length = length.map_err(files::volume_error)?;
        let read = |begin, end| match &file {
            Some(file) => file.read_range(begin, end).map_err(files::volume_error),
            None => Ok(Vec::new()),
        };
        let indexed = match indexed {
            Some(indexed) if indexed.position.offset <= length => {
                let LogPosition { offset, check } = &indexed.position;
                (read(offset.saturating_sub(CHECK_BYTES), *offset)? == *check).then_some(indexed)
            }
            _ => None,
        };
        let start = indexed.as_ref().map_or(0, |indexed| indexed.position.offset);
        let mut contents = Contents::new(first, indexed.as_ref());
        // The length of a volume is limited (`settings::MAX_VOLUME_BYTES`), and so is the memory of these bytes.
        let end = start + contents.take(&read(start, length)?, start)? as u64;
        let check = read(end.saturating_sub(CHECK_BYTES), end)?;
        let volume = Self {
            first,
            folder: folder.into(),
            file,
            contents: RwLock::new(contents),
            end: Mutex::new(LogPosition { offset: end, check }),
        };
        Ok((volume, indexed))
    }

    /// Opens the file of a volume for writing, or creates it durably.
    ///
    /// # Errors
    /// The file system's error.
    pub fn make_writable(&mut self, files: &dyn Files) -> io::Result<()> {
        files.create_folder(&self.folder)?;
        let file = files.open(&self.folder.join(FILE), true)?;
        // A killed process may have left bytes that it wrote and did not sync. They are used from here on, so they must be durable.
        file.sync()?;
        self.file = Some(file);
        if self.end.get_mut().offset == 0 {
            // The file may be new, so that its name is not durable yet.
            files.sync_folder(&self.folder)?;
            if let Some(parent) = self.folder.parent() {
                files.sync_folder(parent)?;
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
        let Some(file) = &self.file else {
            return Err(VolumeError::Broken("the volume has no file".into()));
        };
        let bytes = packed(commit);
        let mut end = self.end.lock();
        if let Err(error) = file.write_at(&bytes, end.offset) {
            let error = files::volume_error(error);
            if error != VolumeError::Full {
                return Err(error);
            }
            // The part that was written must be removed, because it takes space on the full disk.
            file.set_len(end.offset)
                .map_err(|error| VolumeError::Broken(error.to_string()))?;
            return Err(VolumeError::Full);
        }
        // A lack of space that is reported only by the sync is not treated as a full disk, because it is unknown what has been written.
        // The next process to open the log must not find data in the page cache that is not on the disk.
        if let Err(error) = file.sync() {
            let undone = file.set_len(end.offset);
            let left = undone.map_or_else(|error| format!(", nor be undone: {error}"), |()| String::new());
            return Err(VolumeError::Broken(format!(
                "the commit cannot be made durable: {error}{left}"
            )));
        }
        self.contents.write().take(&bytes, end.offset)?;
        let check = bytes.len().saturating_sub(CHECK_BYTES as usize);
        *end = LogPosition {
            offset: end.offset + bytes.len() as u64,
            check: bytes[check..].to_vec(),
        };
        Ok(())
    }

    /// Reads a game's record and verifies its checksum.
    ///
    /// # Errors
    /// [`ReadError`]; other games of the volume are not affected.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        let contents = self.contents.read();
        let extent = contents.games.get(&sequence).copied();
        let is_named = contents.names.contains_key(&sequence);
        drop(contents);
        let (Some(Extent { offset, length }), Some(file)) = (extent, &self.file) else {
            return Err(match is_named {
                true => ReadError::Damaged("its frame is missing or fails its checksum"),
                false => ReadError::Missing,
            });
        };
        let bytes = file
            .read_range(offset, offset + u64::from(length))
            .map_err(files::volume_error)?;
        let found = frame::read(&bytes).map_err(|_| ReadError::Damaged("a checksum fails"))?;
        match Content::of(&found) {
            Some(Content::Game(found, record)) if found == sequence => Ok(record.to_vec()),
            _ => Err(ReadError::Damaged("another frame is in its place")),
        }
    }

    /// Returns the place of a game; `None` if the volume does not have it.
    pub fn extent(&self, sequence: u64) -> Option<Extent> {
        self.contents.read().games.get(&sequence).copied()
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

    /// Returns the end of the last commit.
    pub fn position(&self) -> LogPosition {
        self.end.lock().clone()
    }

    /// Returns all lost and all deleted games, with their ids if these are known.
    pub fn absent(&self) -> [Vec<(u64, Option<Id>)>; 2] {
        let contents = self.contents.read();
        let lost = contents.lost.iter().map(|(sequence, id)| (*sequence, *id));
        let deleted = contents.deleted.iter();
        let deleted = deleted.map(|sequence| (*sequence, contents.names.get(sequence).copied()));
        [lost.collect(), deleted.collect()]
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

fn packed(commit: Commit<'_>) -> Vec<u8> {
    let size: usize = commit.entries.iter().map(|entry| entry.record.len() + 64).sum();
    let mut bytes = Vec::with_capacity(size + 2 * LEDGER_BYTES);
    for entry in commit.entries {
        Content::Game(entry.sequence, &entry.record).append(&mut bytes);
        Content::Name(entry.sequence, entry.id).append(&mut bytes);
    }
    for &(sequence, id) in commit.lost {
        Content::Lost(sequence, id).append(&mut bytes);
    }
    for &sequence in commit.deleted {
        Content::Deleted(sequence).append(&mut bytes);
    }
    Content::Ledger(*commit.ledger).append(&mut bytes);
    append_seal(&mut bytes);
    bytes
}

/// The open volumes in the order of their games, the oldest first. Games are written to the newest volume and read from all; old games
/// are removed by removing the oldest volume as a whole. A reader holds a reference to a volume while it reads, so that removing the
/// volume does not disturb it.
#[derive(Debug, Default)]
pub struct Volumes {
    volumes: RwLock<Vec<Arc<Volume>>>,
}

impl Volumes {
    /// Adds the newest volume.
    pub fn push(&self, volume: Volume) {
        self.volumes.write().push(Arc::new(volume));
    }

    /// Returns the volume that is written to, which is the newest one.
    pub fn newest(&self) -> Option<Arc<Volume>> {
        self.volumes.read().last().map(Arc::clone)
    }

    /// Returns the sealed volumes, which are no longer written to, oldest first, each with the first sequence number of the next volume.
    pub fn sealed(&self) -> Vec<(Arc<Volume>, u64)> {
        let volumes = self.volumes.read();
        let pairs = volumes.iter().zip(volumes.iter().skip(1));
        pairs
            .map(|(volume, next)| (Arc::clone(volume), next.first()))
            .collect()
    }

    /// Returns all volumes, oldest first.
    pub fn all(&self) -> Vec<Arc<Volume>> {
        self.volumes.read().clone()
    }

    /// Removes the oldest volume from the list. The volume is closed when its last reader has finished.
    pub fn remove_oldest(&self) {
        let mut volumes = self.volumes.write();
        if !volumes.is_empty() {
            volumes.remove(0);
        }
    }

    /// Removes all volumes from the list, which closes those without readers.
    pub fn clear(&self) {
        self.volumes.write().clear();
    }

    /// Returns the volume whose range contains this sequence number; `None` if the number is before the oldest volume, or there are no
    /// volumes.
    pub fn holding(&self, sequence: u64) -> Option<Arc<Volume>> {
        let volumes = self.volumes.read();
        let after = volumes.partition_point(|volume| volume.first() <= sequence);
        let at = after.checked_sub(1)?;
        volumes.get(at).map(Arc::clone)
    }

    /// Reads a game's record.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Missing`] if no volume's range contains the sequence number.
    pub fn read(&self, sequence: u64) -> Result<Vec<u8>, ReadError> {
        self.holding(sequence).ok_or(ReadError::Missing)?.read(sequence)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{log::files::Real, window::catalog::Labels};

    fn entry(sequence: u64, bytes: usize) -> NewGame {
        NewGame {
            sequence,
            id: [sequence as u8; 16],
            record: (0..bytes).map(|at| (at as u64 * sequence) as u8).collect(),
        }
    }

    fn open(folder: &Path) -> Volume {
        Volume::open(&Real, folder, 1).unwrap()
    }

    /// Returns what a scan of the file finds.
    fn contents(volume: &Volume) -> (LogPosition, u64, Option<Ledger>) {
        (volume.position(), volume.next(), volume.ledger())
    }

    fn commit(volume: &Volume, entries: &[NewGame]) {
        let all = Commit {
            entries,
            lost: &[(10, None), (11, Some([3; 16]))],
            deleted: &[2],
            ledger: &Ledger::new(),
        };
        volume.commit(all).unwrap();
    }

    #[test]
    fn indexed_contents_replace_the_scan_only_for_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let volume = open(folder.path());
        commit(&volume, &[entry(1, 500), entry(2, 20_000)]);
        let indexed = || {
            let [lost, deleted] = volume.absent();
            let row = |sequence| {
                Some(Row {
                    sequence,
                    id: volume.name(sequence)?,
                    extent: volume.extent(sequence)?,
                    trainable: 1,
                    bytes: 1,
                    listed: Labels::default().listed(&Default::default(), 1),
                })
            };
            Indexed {
                position: volume.position(),
                rows: (1..4).filter_map(row).collect(),
                lost,
                deleted,
                ledger: volume.ledger(),
                next: volume.next(),
            }
        };
        let early = indexed();
        commit(&volume, &[entry(3, 700)]);
        let late = indexed();
        let expected = contents(&volume);
        let whole_file = || Volume::read_only(&Real, folder.path(), 1, None).unwrap().0;
        for indexed in [Some(early), Some(late), None] {
            let context = format!("{:?}", indexed.as_ref().map(|indexed| indexed.position.offset));
            let is_given = indexed.is_some();
            let (volume, indexed) = Volume::read_only(&Real, folder.path(), 1, indexed).unwrap();
            assert_eq!(indexed.is_some(), is_given, "{context}");
            assert_eq!(contents(&volume), expected, "{context}");
            assert_eq!(volume.absent(), whole_file().absent(), "{context}");
            for (sequence, bytes) in [(1, 500), (2, 20_000), (3, 700)] {
                assert_eq!(volume.read(sequence).unwrap(), entry(sequence, bytes).record);
                assert_eq!(volume.name(sequence), Some([sequence as u8; 16]));
            }
            assert_eq!(volume.read(10), Err(ReadError::Missing));
        }
        for (offset, check) in [(expected.0.offset, 1), (1 << 30, 0)] {
            let other = Indexed {
                position: LogPosition {
                    offset,
                    check: vec![check; 32],
                },
                ..Indexed::default()
            };
            let (volume, indexed) = Volume::read_only(&Real, folder.path(), 1, Some(other)).unwrap();
            assert!(indexed.is_none());
            assert_eq!(contents(&volume), expected);
        }
    }

    #[test]
    fn the_next_commit_overwrites_a_torn_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let volume = open(folder.path());
        commit(&volume, &[entry(1, 500), entry(2, 500)]);
        let whole = fs::metadata(&path).unwrap().len();
        commit(&volume, &[entry(3, 20_000)]);
        drop(volume);
        let bytes = fs::read(&path).unwrap();
        for keep in [whole, whole + 1, whole + 9_000] {
            fs::write(&path, &bytes[..keep as usize]).unwrap();
            let volume = open(folder.path());
            assert!(volume.read(3).is_err(), "{keep} bytes kept");
            commit(&volume, &[entry(4, 100)]);
            drop(volume);
            let volume = open(folder.path());
            for (sequence, bytes) in [(1, 500), (2, 500), (4, 100)] {
                let record = volume.read(sequence).unwrap();
                assert_eq!(record, entry(sequence, bytes).record, "{keep} bytes kept");
            }
        }
    }
}
