//! The index of the log: a sled database with what the store keeps in memory of each game, so that it opens without reading its games.
//!
//! The log is authoritative. Games are written to the index after they were acknowledged, with the position in the log up to which the
//! index is complete then. An index that is missing, damaged, of another version or behind the log is completed from the log; deleting
//! its folder loses nothing.
//!
//! Each volume has a tree of its own, which is dropped with the volume. In one common tree sled would not release the space of deleted
//! entries, because insertions are at one end and deletions at the other.
//!
//! ```text
//! number of the group in its volume, number of the piece (u32 each, big-endian) → a piece of a zstd frame of [`StoredGroup`]
//! ```
//! Games are stored in groups, because sled opens and reads one value for each game more slowly than a scan of the log takes. A tree is
//! read up to its first group that is damaged or of another version, and continued from there.
//!
//! Groups are cut into pieces, because sled 0.34 writes a node that is larger than a quarter of a segment to a file of its own. The name
//! of that file can be taken after a crash. The write then fails, and every later flush waits for it forever. So a database is never
//! dropped after an error, because dropping flushes.
//!
//! sled 0.34 can panic on damaged files, so a panic in a call of sled is caught and becomes an error. Its background flush is off.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use prost::Message;
use service::contain;
use sled::{Db, IVec, Tree};

use crate::{
    log::{
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
/// Version of the groups.
const FORMAT: u32 = 1;
/// Size of sled's segments in bytes. It is small, so that the index of a small store is small.
const SEGMENT_BYTES: usize = 512 * 1024;
/// Maximum size of a value in bytes. A node of sled holds at most 17 values, and must stay smaller than a quarter of a segment.
const PIECE_BYTES: usize = SEGMENT_BYTES / 4 / 20;
/// Size of sled's page cache in bytes.
const PAGE_CACHE_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum time that a database which this process has just closed may take to release its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum time between two flushes. What was written since the last one is read from the log again after a crash.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A group as it is stored: the games since the group before it, and the other contents of the volume by then.
#[derive(Clone, PartialEq, Message)]
struct StoredGroup {
    /// [`FORMAT`]
    #[prost(uint32, tag = "8")]
    format: u32,
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

/// The tree of a volume that is open.
#[derive(Debug, Default)]
struct VolumeTree {
    /// Number of groups in the tree.
    groups: u32,
    /// Games that are not in a group yet.
    rows: Vec<StoredRow>,
    /// Position up to which the groups are complete.
    position: LogPosition,
    /// True if the volume has changed since the last group.
    is_changed: bool,
}

/// The index of a store that is open for writing.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    /// `None` after an error of the database. The next opening of the store rebuilds it.
    database: Mutex<Option<Db>>,
    /// Trees by the first sequence numbers of their volumes. A volume that is not listed has no tree, so that the next opening scans it.
    volumes: Mutex<BTreeMap<u64, VolumeTree>>,
    /// Time of the last flush.
    flushed: Mutex<Instant>,
    /// Number of volumes whose tree was damaged, and of errors of the database.
    discarded: AtomicU64,
}

impl Index {
    /// Opens the index in `folder`, which is created if it does not exist. A damaged index is replaced by an empty one. Every tree that is
    /// not that of one of the volumes with these first sequence numbers is removed.
    ///
    /// # Errors
    /// sled's message.
    pub fn open(folder: &Path, volumes: impl IntoIterator<Item = u64>) -> Result<Self, String> {
        let index = Self {
            folder: folder.into(),
            database: Mutex::default(),
            volumes: Mutex::default(),
            flushed: Mutex::new(Instant::now()),
            discarded: AtomicU64::new(0),
        };
        let database = open(folder).or_else(|error| {
            index.discard(&error);
            open(folder)
        })?;
        *index.database.lock() = Some(database);
        let known: Vec<u64> = volumes.into_iter().collect();
        index.call(|database| {
            for name in database.tree_names() {
                let first = name.as_ref().try_into().map(u64::from_be_bytes);
                if first.is_ok_and(|first| !known.contains(&first)) {
                    database.drop_tree(name)?;
                }
            }
            Ok(())
        });
        Ok(index)
    }

    /// Returns the contents of the volume that begins with sequence number `first`, or `None` if they are not in the index, so that the
    /// volume must be scanned.
    pub fn load(&self, first: u64, labels: &mut Labels) -> Option<Indexed> {
        let mut indexed = Indexed::default();
        let mut groups = 0;
        let is_whole = self.call(|database| {
            let tree = tree(database, first)?;
            while tree.range(key_of(groups, 0)..).next().transpose()?.is_some() {
                let pieces = tree.scan_prefix(groups.to_be_bytes()).values();
                let pieces: Vec<IVec> = pieces.collect::<sled::Result<_>>()?;
                let group = group(&pieces.concat());
                if group.and_then(|group| add(group, &mut indexed, labels)).is_none() {
                    return Ok(false);
                }
                groups += 1;
            }
            Ok(true)
        })?;
        if !is_whole {
            tracing::warn!(
                volume = first,
                "a part of the index is missing, damaged or of another version; it is completed from the log"
            );
            self.discarded.fetch_add(1, Ordering::SeqCst);
        }
        let tree = VolumeTree {
            groups,
            position: indexed.position.clone(),
            ..VolumeTree::default()
        };
        self.volumes.lock().insert(first, tree);
        (!indexed.rows.is_empty()).then_some(indexed)
    }

    /// Begins to record the changes of a volume that was opened. The tree has the first `indexed` of its games; with 0 it is written anew.
    /// `rows` are the other ones.
    pub fn begin(&self, volume: &Volume, indexed: u64, rows: &[Row]) {
        let first = volume.first();
        let groups = {
            let mut volumes = self.volumes.lock();
            let found = volumes.entry(first).or_default();
            if indexed == 0 {
                *found = VolumeTree::default();
            }
            found.is_changed = indexed == 0 || found.position != volume.position();
            found.rows.extend(rows.iter().map(stored));
            found.groups
        };
        // Groups behind the last intact one.
        self.call(|database| {
            let tree = tree(database, first)?;
            for key in tree.range(key_of(groups, 0)..).keys() {
                tree.remove(key?)?;
            }
            Ok(())
        });
    }

    /// Records what was committed to a volume: `rows` are its new games.
    pub fn record(&self, volume: &Volume, rows: &[Row]) {
        let is_full = match self.volumes.lock().get_mut(&volume.first()) {
            Some(found) => {
                found.rows.extend(rows.iter().map(stored));
                found.is_changed = true;
                found.rows.len() >= GROUP_GAMES
            }
            None => false,
        };
        if is_full {
            self.write(volume);
        }
    }

    /// Writes the changes of a volume to its tree.
    pub fn write(&self, volume: &Volume) {
        let first = volume.first();
        let mut volumes = self.volumes.lock();
        let Some(found) = volumes.get_mut(&first).filter(|found| found.is_changed) else {
            return;
        };
        let [lost, deleted] = volume.absent();
        let LogPosition { offset, check } = volume.position();
        let ledger = volume.ledger();
        let group = StoredGroup {
            format: FORMAT,
            rows: std::mem::take(&mut found.rows),
            lost: stored_names(lost),
            deleted: stored_names(deleted),
            offset,
            check,
            ledger: ledger.map_or_else(Vec::new, |ledger| ledger.pack(0).to_vec()),
            next: volume.next(),
        };
        let number = found.groups;
        found.groups += 1;
        found.is_changed = false;
        // The tree of a volume that is forgotten meanwhile must not be made again, so the lock is held.
        self.call(|database| {
            let packed = zstd::bulk::compress(&group.encode_to_vec(), ZSTD_LEVEL)?;
            let tree = tree(database, first)?;
            for (piece, value) in (0..).zip(packed.chunks(PIECE_BYTES)) {
                tree.insert(key_of(number, piece), value)?;
            }
            let mut flushed = self.flushed.lock();
            if flushed.elapsed() >= FLUSH_INTERVAL {
                database.flush()?;
                *flushed = Instant::now();
            }
            Ok(())
        });
    }

    /// Flushes and closes the database. Later changes are not recorded.
    pub fn close(&self) {
        self.call(|database| database.flush());
        *self.database.lock() = None;
    }

    /// Removes the tree of a volume, because the volume is removed, or because a game in it cannot be read. The next opening of the store
    /// scans the volume.
    pub fn forget(&self, first: u64) {
        let mut volumes = self.volumes.lock();
        volumes.remove(&first);
        self.call(|database| database.drop_tree(first.to_be_bytes()));
    }

    /// Returns the number of volumes whose tree was damaged, and of errors of the database, since the store was opened.
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::SeqCst)
    }

    /// Calls sled. Returns `None` if the database is closed, and after an error, which closes the database and removes its files.
    fn call<T>(&self, call: impl FnOnce(&Db) -> sled::Result<T>) -> Option<T> {
        let database = self.database.lock().clone()?;
        let called = contained(|| call(&database));
        drop(database);
        called.inspect_err(|error| self.discard(error)).ok()
    }

    fn discard(&self, error: &str) {
        tracing::warn!(
            error,
            "the index of the replay store cannot be used; it is rebuilt from the log"
        );
        // Dropping it could wait forever, see the top of this file. A later database has a lock file of its own.
        std::mem::forget(self.database.lock().take());
        self.discarded.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot remove a damaged index");
        }
    }
}

fn open(folder: &Path) -> Result<Db, String> {
    let config = sled::Config::new()
        .path(folder)
        .flush_every_ms(None)
        .use_compression(false)
        .segment_size(SEGMENT_BYTES)
        .cache_capacity(PAGE_CACHE_BYTES);
    let began = Instant::now();
    loop {
        match contained(|| config.open()) {
            Err(reason) if reason.contains("could not acquire lock") && began.elapsed() < LOCK_TIMEOUT => {
                thread::sleep(Duration::from_millis(20));
            }
            opened => return opened,
        }
    }
}

/// Calls sled, and turns a panic into an error.
fn contained<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, String> {
    match contain(call) {
        Ok(called) => called.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("sled panicked: {panic}")),
    }
}

fn tree(database: &Db, first: u64) -> sled::Result<Tree> {
    database.open_tree(first.to_be_bytes())
}

fn key_of(group: u32, piece: u32) -> [u8; 8] {
    (u64::from(group) << 32 | u64::from(piece)).to_be_bytes()
}

/// Unpacks a group. Returns `None` if it is damaged or of another version.
fn group(packed: &[u8]) -> Option<StoredGroup> {
    let group = zstd::stream::decode_all(packed).ok()?;
    let group = StoredGroup::decode(group.as_slice()).ok()?;
    (group.format == FORMAT).then_some(group)
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
