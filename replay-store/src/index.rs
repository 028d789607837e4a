//! The index of the log: what the store keeps in memory of each game, in files, so that it opens without reading its games.
//!
//! The log is authoritative. Games are written to the index after they were acknowledged, with the position in the log up to which the
//! index is complete then. An index that is missing, damaged, of another version or behind the log is completed from the log; deleting
//! its folder loses nothing.
//!
//! Each volume has a file of its own, which is removed with the volume:
//!
//! ```text
//! file  = group …
//! group = frame of kind N: a zstd frame of [`StoredGroup`]
//! ```
//! Files are not synced. They survive the end of the process, and a loss of power costs groups, which are read from the log again. A file
//! is read up to its first group that is damaged or of another version, and continued from there.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use durable::frame::{self, Frame};
use parking_lot::Mutex;
use prost::Message;

use crate::{
    log::{
        files::Files,
        frame::Id,
        ledger::Ledger,
        volume::{Extent, Indexed, LogPosition, Row, Volume},
    },
    window::catalog::{Labels, Listed, Texts},
};

/// Number of games after which they are written to the file. A crash costs at most the reading of so many games.
const GROUP_GAMES: usize = 256;
/// Level of the zstd compression.
const ZSTD_LEVEL: i32 = 3;
const ENDING: &str = "rows";

/// A group as it is stored: the games since the group before it, and the other contents of the volume by then.
#[derive(Clone, PartialEq, Message)]
struct StoredGroup {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<StoredRow>,
    #[prost(message, repeated, tag = "2")]
    lost: Vec<StoredName>,
    #[prost(message, repeated, tag = "3")]
    deleted: Vec<StoredName>,
    /// Offset and bytes of the [`LogPosition`].
    #[prost(uint64, tag = "4")]
    offset: u64,
    #[prost(bytes = "vec", tag = "5")]
    check: Vec<u8>,
    /// The newest sealed ledger, packed.
    #[prost(bytes = "vec", tag = "6")]
    ledger: Vec<u8>,
    /// The groups so far have every game below this sequence number.
    #[prost(uint64, tag = "7")]
    next: u64,
}

/// A game's sequence number, with its id if that is known.
#[derive(Clone, PartialEq, Message)]
struct StoredName {
    #[prost(uint64, tag = "1")]
    sequence: u64,
    #[prost(bytes = "vec", tag = "2")]
    id: Vec<u8>,
}

/// A row as it is stored.
#[derive(Clone, PartialEq, Message)]
struct StoredRow {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    offset: u64,
    #[prost(uint32, tag = "3")]
    length: u32,
    #[prost(uint32, tag = "4")]
    trainable: u32,
    #[prost(uint32, tag = "5")]
    bytes: u32,
    #[prost(uint64, tag = "7")]
    finished_at_ms: u64,
    #[prost(uint32, tag = "8")]
    positions: u32,
    #[prost(float, tag = "9")]
    surprise: f32,
    #[prost(string, repeated, tag = "10")]
    models: Vec<String>,
    #[prost(string, tag = "11")]
    actor: String,
    #[prost(string, tag = "12")]
    ending: String,
    #[prost(uint64, tag = "13")]
    sequence: u64,
}

fn stored(row: &Row) -> StoredRow {
    let Listed { texts, .. } = &row.listed;
    StoredRow {
        sequence: row.sequence,
        id: row.id.to_vec(),
        offset: row.extent.offset,
        length: row.extent.length,
        trainable: row.trainable,
        bytes: row.bytes,
        finished_at_ms: row.listed.finished_at_ms,
        positions: row.listed.positions,
        surprise: row.listed.surprise,
        models: texts.models.clone(),
        actor: texts.actor.clone(),
        ending: texts.ending.clone(),
    }
}

fn row(stored: StoredRow, labels: &mut Labels) -> Option<Row> {
    Some(Row {
        sequence: stored.sequence,
        id: stored.id.try_into().ok()?,
        extent: Extent {
            offset: stored.offset,
            length: stored.length,
        },
        trainable: stored.trainable,
        bytes: stored.bytes,
        listed: Listed {
            finished_at_ms: stored.finished_at_ms,
            positions: stored.positions,
            surprise: stored.surprise,
            texts: labels.shared(Texts {
                models: stored.models,
                actor: stored.actor,
                ending: stored.ending,
            }),
        },
    })
}

fn stored_names(games: Vec<(u64, Option<Id>)>) -> Vec<StoredName> {
    let stored = |(sequence, id): (u64, Option<Id>)| StoredName {
        sequence,
        id: id.map_or_else(Vec::new, |id| id.to_vec()),
    };
    games.into_iter().map(stored).collect()
}

fn names(stored: Vec<StoredName>) -> Vec<(u64, Option<Id>)> {
    let games = stored.into_iter();
    games
        .map(|game| (game.sequence, game.id.try_into().ok()))
        .collect()
}

/// The file of a volume that is open.
#[derive(Debug, Default)]
struct IndexFile {
    /// End of the last group.
    end: u64,
    /// Games that are not in a group yet.
    rows: Vec<StoredRow>,
    /// True if the volume has changed since the last group.
    is_changed: bool,
}

/// The index of a store that is open for writing.
#[derive(Debug)]
pub struct Index {
    files: Arc<dyn Files>,
    folder: PathBuf,
    /// Files by the first sequence numbers of their volumes. A volume that is not listed has no file, so that the next opening scans it.
    volumes: Mutex<BTreeMap<u64, IndexFile>>,
    /// Number of files that were damaged or could not be written.
    discarded: AtomicU64,
}

impl Index {
    /// Opens the index in `folder`, which is created if it does not exist. Everything in it that is not the file of one of the volumes
    /// with these first sequence numbers is removed.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(
        files: Arc<dyn Files>,
        folder: &Path,
        volumes: impl IntoIterator<Item = u64>,
    ) -> io::Result<Self> {
        let known: Vec<PathBuf> = volumes.into_iter().map(|first| file(folder, first)).collect();
        files.create_folder(folder)?;
        for entry in files.list(folder)? {
            if entry.is_folder {
                files.remove_folder(&entry.path)?;
            } else if !known.contains(&entry.path) {
                files.remove_file(&entry.path)?;
            }
        }
        Ok(Self {
            files,
            folder: folder.into(),
            volumes: Mutex::default(),
            discarded: AtomicU64::new(0),
        })
    }

    /// Returns the contents of the volume that begins with sequence number `first`, or `None` if they are not in the index, so that the
    /// volume must be scanned.
    pub fn load(&self, first: u64, labels: &mut Labels) -> Option<Indexed> {
        let path = file(&self.folder, first);
        if !self.files.exists(&path) {
            return None;
        }
        let bytes = self.files.read(&path);
        let bytes = bytes.inspect_err(|error| self.discard(first, &error)).ok()?;
        let mut indexed = Indexed::default();
        let mut end = 0;
        for (range, found) in frame::ranges(&bytes) {
            let group = found.ok().and_then(|found| group(&found));
            let read = group.and_then(|group| add(group, &mut indexed, labels));
            if read.is_none() {
                self.discard(first, &"a part is damaged, or of another version");
                break;
            }
            end = range.end as u64;
        }
        self.volumes.lock().entry(first).or_default().end = end;
        (!indexed.rows.is_empty()).then_some(indexed)
    }

    /// Begins to record the changes of a volume that was opened. The file has the first `indexed` of its games; with 0 it is written anew.
    /// `rows` are the other ones.
    pub fn begin(&self, volume: &Volume, indexed: u64, rows: &[Row]) {
        {
            let mut volumes = self.volumes.lock();
            let file = volumes.entry(volume.first()).or_default();
            if indexed == 0 {
                file.end = 0;
            }
        }
        self.record(volume, rows);
    }

    /// Records what was committed to a volume: `rows` are its new games.
    pub fn record(&self, volume: &Volume, rows: &[Row]) {
        let is_full = match self.volumes.lock().get_mut(&volume.first()) {
            Some(file) => {
                file.rows.extend(rows.iter().map(stored));
                file.is_changed = true;
                file.rows.len() >= GROUP_GAMES
            }
            None => false,
        };
        if is_full {
            self.write(volume);
        }
    }

    /// Writes the changes of a volume to its file. After an error the file is no longer continued, and the next opening completes it.
    pub fn write(&self, volume: &Volume) {
        let first = volume.first();
        let mut volumes = self.volumes.lock();
        let Some(file) = volumes.get_mut(&first).filter(|file| file.is_changed) else {
            return;
        };
        if let Err(error) = self.append(volume, file) {
            volumes.remove(&first);
            self.discard(first, &error);
        }
    }

    fn append(&self, volume: &Volume, file: &mut IndexFile) -> io::Result<()> {
        let [lost, deleted] = volume.absent();
        let LogPosition { offset, check } = volume.position();
        let ledger = volume.ledger();
        let group = StoredGroup {
            rows: std::mem::take(&mut file.rows),
            lost: stored_names(lost),
            deleted: stored_names(deleted),
            offset,
            check,
            ledger: ledger.map_or_else(Vec::new, |ledger| ledger.pack(0).to_vec()),
            next: volume.next(),
        };
        let packed = zstd::bulk::compress(&group.encode_to_vec(), ZSTD_LEVEL)?;
        let mut bytes = Vec::with_capacity(frame::HEAD + packed.len());
        frame::append(b'N', &[&packed], &mut bytes);
        let path = self::file(&self.folder, volume.first());
        let out = self.files.open(&path, true)?;
        // A damaged group may follow the last intact one.
        out.set_len(file.end)?;
        out.write_at(&bytes, file.end)?;
        file.end += bytes.len() as u64;
        file.is_changed = false;
        Ok(())
    }

    /// Removes the file of a volume, because the volume is removed, or because a game in it cannot be read. The next opening of the store
    /// scans the volume.
    pub fn forget(&self, first: u64) {
        self.volumes.lock().remove(&first);
        let removed = self.files.remove_file(&file(&self.folder, first));
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            self.discard(first, &error);
        }
    }

    /// Returns the number of files that were damaged or could not be written since the store was opened.
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::SeqCst)
    }

    fn discard(&self, first: u64, error: &dyn std::fmt::Display) {
        tracing::warn!(volume = first, %error, "the index of a volume cannot be used and is completed from the log");
        self.discarded.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns the file of the volume that begins with sequence number `first`.
fn file(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.{ENDING}"))
}

/// Unpacks a group. Returns `None` if it is damaged or of another version.
fn group(found: &Frame<'_>) -> Option<StoredGroup> {
    let group = zstd::stream::decode_all(found.of_kind(b'N')?).ok()?;
    StoredGroup::decode(group.as_slice()).ok()
}

/// Adds a group to the contents of a volume. Returns `None` if a game of the group is damaged.
fn add(group: StoredGroup, indexed: &mut Indexed, labels: &mut Labels) -> Option<()> {
    let rows = group.rows.into_iter().map(|stored| row(stored, labels));
    let rows: Vec<Row> = rows.collect::<Option<_>>()?;
    indexed.rows.extend(rows);
    indexed.position = LogPosition {
        offset: group.offset,
        check: group.check,
    };
    indexed.lost = names(group.lost);
    indexed.deleted = names(group.deleted);
    indexed.ledger = Ledger::unpack(&group.ledger).map(|(ledger, _)| ledger);
    indexed.next = group.next;
    Some(())
}
