//! The index of the log: a sled database with what the store keeps in memory of each game, so that it opens without reading its games.
//!
//! The log is authoritative. A thread writes games to the index after they were acknowledged, and records for each volume the position up
//! to which the index is complete. An index that is missing, damaged, of another version or behind the log is rebuilt or completed from
//! the log; deleting its folder loses nothing.
//!
//! Each volume has a tree of its own, which is dropped with the volume. In one common tree sled would not release the space of deleted
//! entries, because insertions are at one end and deletions at the other.
//!
//! ```text
//! sequence number (u64, big-endian)         → a group of games that begins with it: a zstd frame of [`StoredRows`]
//! sequence number · 'd'                     → the game was deleted
//! sequence number · 'l'                     → the game is lost: its id, or nothing
//! 'mark'                                    → the part of the log that the tree covers ([`Mark`])
//! ```
//!
//! Games are stored in groups, because sled opens and reads one value for each game more slowly than a scan of the log takes.
//!
//! sled 0.34 can panic on damaged files, so a panic in a call of sled is caught and becomes an error. Its background flush is off.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use prost::Message as _;
use serde::{Deserialize, Serialize};
use service::contain;
use sled::{Batch, Db};

use crate::{
    log::{
        frame::Id,
        ledger::Ledger,
        recover::{Indexed, Row},
        volume::{Extent, Known, Position, Volume},
    },
    window::catalog::{Labels, Listed, Texts},
};

/// Version of the keys and values. An index with another version is rebuilt.
const FORMAT: u32 = 1;

const MARK: &[u8] = b"mark";

/// Size of sled's segments in bytes. It is small, so that the index of a small store is small.
const SEGMENT_BYTES: usize = 512 * 1024;

/// Size of sled's page cache in bytes.
const PAGE_CACHE_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum time that a database which this process has just closed may take to release its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of games after which they are written to the database, and maximum number of games in a group. More frequent writes would gain
/// nothing, because games that a crash removes from it are read from the log again.
const GROUP_GAMES: usize = 256;

/// Level of the zstd compression.
const ZSTD_LEVEL: i32 = 3;

/// Time between two flushes of the index to the disk. It limits the part of the log that is read again after a loss of power.
const FLUSH_INTERVAL: Duration = Duration::from_secs(30);

/// A group of games as it is stored.
#[derive(Clone, PartialEq, prost::Message)]
struct StoredRows {
    #[prost(message, repeated, tag = "1")]
    rows: Vec<StoredRow>,
}

/// A row as it is stored.
#[derive(Clone, PartialEq, prost::Message)]
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
    #[prost(bytes = "vec", tag = "6")]
    replaces: Vec<u8>,
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
        replaces: row.replaces.map_or_else(Vec::new, |id| id.to_vec()),
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
        replaces: stored.replaces.try_into().ok(),
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

/// The part of the log that a tree covers. Written together with the last entries of that part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Mark {
    /// Version of the index: [`FORMAT`].
    format: u32,
    /// The tree covers every sequence number below this one.
    next: u64,
    /// Position in the volume's file up to which the tree is complete.
    position: Position,
    /// The newest sealed ledger, packed.
    ledger: Vec<u8>,
    /// Number of games, and of games that are lost or deleted.
    games: u64,
    absent: u64,
}

/// Changes of a volume that are not in the database yet.
#[derive(Debug, Default)]
struct Pending {
    batch: Batch,
    /// Games that are not in `batch` yet.
    rows: Vec<StoredRow>,
    mark: Mark,
    /// True if the volume has changed since the last write.
    is_changed: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Volumes by first sequence number. A volume that is not listed has no tree, so that the next opening scans it.
    volumes: BTreeMap<u64, Pending>,
    is_closing: bool,
}

/// Handle of the running thread. Dropping it ends the thread after it has written what is left.
#[derive(Debug)]
pub struct Indexing {
    index: Arc<Index>,
    thread: Option<JoinHandle<()>>,
}

impl Indexing {
    /// Ends the thread, and waits until it has written what is left.
    pub fn end(mut self) {
        let thread = self.thread.take();
        drop(self);
        // The panic hook has logged a panic. The next opening completes the index.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Indexing {
    fn drop(&mut self) {
        self.index.state.lock().is_closing = true;
        self.index.wake.notify_one();
    }
}

/// The index of a store that is open for writing.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    /// `None` after an error of the database. The next opening of the store rebuilds it.
    database: Mutex<Option<Db>>,
    state: Mutex<State>,
    wake: Condvar,
    /// Number of volumes whose index was discarded.
    discarded: AtomicU64,
}

impl Index {
    /// Opens the index in `folder`, which is created if it does not exist. A damaged index is replaced by an empty one.
    ///
    /// # Errors
    /// sled's message.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let index = Self {
            folder: folder.into(),
            database: Mutex::new(None),
            state: Mutex::default(),
            wake: Condvar::new(),
            discarded: AtomicU64::new(0),
        };
        let opened = open(folder).or_else(|error| {
            tracing::warn!(%error, "the index of the replay store cannot be opened and is rebuilt");
            index.discarded.fetch_add(1, Ordering::SeqCst);
            let _ = fs::remove_dir_all(folder);
            open(folder)
        })?;
        *index.database.lock() = Some(opened);
        Ok(index)
    }

    /// Returns the contents of the volume that begins with sequence number `first`, or `None` if they are not in the index, so that the
    /// volume must be scanned.
    pub fn load(&self, first: u64, labels: &mut Labels) -> Option<Indexed> {
        let database = self.database.lock().clone()?;
        match contained(|| load(&database, first, labels)) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(volume = first, %error, "the index of a volume cannot be used and is rebuilt");
                self.discarded.fetch_add(1, Ordering::SeqCst);
                None
            }
        }
    }

    /// Begins to record the changes of a volume that was opened. The tree has the first `indexed` of its games; 0 empties the tree. `rows`
    /// are the other ones.
    pub fn begin(&self, volume: &Volume, indexed: u64, rows: &[Row]) {
        if indexed == 0 {
            self.drop_tree(volume.first());
        }
        let mut pending = Pending::default();
        pending.mark.games = indexed;
        self.state.lock().volumes.insert(volume.first(), pending);
        self.record(volume, rows);
    }

    /// Records what was committed to a volume: `rows` are its new games.
    pub fn record(&self, volume: &Volume, rows: &[Row]) {
        let mut state = self.state.lock();
        let Some(pending) = state.volumes.get_mut(&volume.first()) else {
            return;
        };
        pending.rows.extend(rows.iter().map(stored));
        pending.is_changed = true;
        let absent = volume.count_absent();
        if absent != pending.mark.absent {
            let [lost, deleted] = volume.absent();
            for (sequence, id) in lost {
                pending.batch.insert(key(sequence, b"l"), id_bytes(id));
            }
            for (sequence, id) in deleted {
                pending.batch.insert(key(sequence, b"d"), id_bytes(id));
            }
        }
        pending.mark = Mark {
            format: FORMAT,
            next: volume.next(),
            position: volume.position(),
            ledger: volume
                .ledger()
                .map_or_else(Vec::new, |ledger| ledger.pack(0).to_vec()),
            games: pending.mark.games + rows.len() as u64,
            absent,
        };
        if pending.rows.len() >= GROUP_GAMES {
            self.wake.notify_one();
        }
    }

    /// Removes the tree of a volume, because the volume is removed, or because a game that the tree has cannot be read. The next opening of
    /// the store scans the volume.
    pub fn forget(&self, first: u64) {
        self.state.lock().volumes.remove(&first);
        self.drop_tree(first);
    }

    /// Returns the number of volumes whose index was discarded since the store was opened.
    pub fn discarded(&self) -> u64 {
        self.discarded.load(Ordering::SeqCst)
    }

    /// Starts the thread that writes to the database.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn start(self: &Arc<Self>) -> io::Result<Indexing> {
        let index = Arc::clone(self);
        let thread = thread::Builder::new().name("replay-indexer".into());
        let thread = thread.spawn(move || {
            index.drop_unknown();
            let mut flushed = Instant::now();
            loop {
                let is_closing = {
                    let mut state = index.state.lock();
                    if !state.is_closing {
                        index.wake.wait_for(&mut state, FLUSH_INTERVAL);
                    }
                    state.is_closing
                };
                let is_due = is_closing || flushed.elapsed() >= FLUSH_INTERVAL;
                index.write(is_due);
                if is_due {
                    flushed = Instant::now();
                }
                if is_closing {
                    // Releases the lock of the database.
                    *index.database.lock() = None;
                    return;
                }
            }
        })?;
        Ok(Indexing {
            index: Arc::clone(self),
            thread: Some(thread),
        })
    }

    /// Writes the changes of every volume that has many of them, or with `is_due` of every volume, and flushes them then.
    fn write(&self, is_due: bool) {
        let Some(database) = self.database.lock().clone() else {
            return;
        };
        let changes: Vec<(u64, Pending)> = {
            let mut state = self.state.lock();
            let volumes = state.volumes.iter_mut();
            volumes
                .filter(|(_, pending)| pending.rows.len() >= GROUP_GAMES || is_due && pending.is_changed)
                .map(|(first, pending)| {
                    let rest = Pending {
                        mark: pending.mark.clone(),
                        ..Pending::default()
                    };
                    (*first, std::mem::replace(pending, rest))
                })
                .collect()
        };
        let written = contained(|| {
            for (first, changes) in changes {
                let Pending {
                    mut batch,
                    rows,
                    mark,
                    ..
                } = changes;
                for rows in rows.chunks(GROUP_GAMES) {
                    let begin = rows.first().map_or(first, |row| row.sequence);
                    let group = StoredRows { rows: rows.to_vec() }.encode_to_vec();
                    let value =
                        zstd::bulk::compress(&group, ZSTD_LEVEL).map_err(|error| error.to_string())?;
                    batch.insert(key(begin, b""), value);
                }
                batch.insert(
                    MARK,
                    serde_json::to_vec(&mark).map_err(|error| error.to_string())?,
                );
                let tree = database.open_tree(first.to_be_bytes());
                tree.and_then(|tree| tree.apply_batch(batch))
                    .map_err(|error| error.to_string())?;
            }
            match is_due {
                true => database.flush().map(drop).map_err(|error| error.to_string()),
                false => Ok(()),
            }
        });
        if let Err(error) = written {
            self.discard(&error);
        }
    }

    /// Closes the database after an error and removes its files.
    fn discard(&self, error: &str) {
        tracing::warn!(%error, "the index of the replay store cannot be written; the next start rebuilds it");
        *self.database.lock() = None;
        self.discarded.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot remove a damaged index");
        }
    }

    fn drop_tree(&self, first: u64) {
        let Some(database) = self.database.lock().clone() else {
            return;
        };
        if let Err(error) = contained(|| database.drop_tree(first.to_be_bytes())) {
            self.discard(&error);
        }
    }

    /// Removes the trees of volumes that no longer exist.
    fn drop_unknown(&self) {
        let Some(database) = self.database.lock().clone() else {
            return;
        };
        let Ok(names) = contained(|| Ok::<_, String>(database.tree_names())) else {
            return;
        };
        for name in names {
            let first = name.as_ref().try_into().map(u64::from_be_bytes);
            if let Ok(first) = first
                && !self.state.lock().volumes.contains_key(&first)
            {
                self.drop_tree(first);
            }
        }
    }
}

fn key(sequence: u64, kind: &[u8]) -> Vec<u8> {
    [&sequence.to_be_bytes()[..], kind].concat()
}

fn id_bytes(id: Option<Id>) -> Vec<u8> {
    id.map_or_else(Vec::new, |id| id.to_vec())
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

/// Reads the tree of a volume. Returns `None` if it is new.
///
/// # Errors
/// A text that says why the tree cannot be used.
fn load(database: &Db, first: u64, labels: &mut Labels) -> Result<Option<Indexed>, String> {
    let sled = |error: sled::Error| error.to_string();
    let tree = database.open_tree(first.to_be_bytes()).map_err(sled)?;
    let Some(mark) = tree.get(MARK).map_err(sled)? else {
        return Ok(None);
    };
    let mark: Mark = serde_json::from_slice(&mark).map_err(|error| error.to_string())?;
    if mark.format != FORMAT {
        return Err(format!("it has format {}", mark.format));
    }
    let (mut rows, mut lost, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &tree {
        let (key, value) = entry.map_err(sled)?;
        if key.as_ref() == MARK {
            continue;
        }
        let (sequence, kind) = key.split_first_chunk::<8>().ok_or("it has an unknown key")?;
        let sequence = u64::from_be_bytes(*sequence);
        let id = || Id::try_from(value.as_ref()).ok();
        match kind {
            b"" => {
                let group = zstd::stream::decode_all(value.as_ref()).map_err(|error| error.to_string())?;
                let group = StoredRows::decode(group.as_slice()).map_err(|error| error.to_string())?;
                for stored in group.rows {
                    rows.push(row(stored, labels).ok_or("a game cannot be read")?);
                }
            }
            b"l" => lost.push((sequence, id())),
            b"d" => deleted.push((sequence, id())),
            _ => return Err("it has an unknown key".into()),
        }
    }
    if (rows.len() as u64, (lost.len() + deleted.len()) as u64) != (mark.games, mark.absent) {
        return Err("games are missing".into());
    }
    rows.retain(|row: &Row| {
        lost.binary_search_by_key(&row.sequence, |(sequence, _)| *sequence)
            .is_err()
    });
    let games = rows
        .iter()
        .map(|row| (row.sequence, row.id, row.extent))
        .collect();
    rows.retain(|row| {
        deleted
            .binary_search_by_key(&row.sequence, |(sequence, _)| *sequence)
            .is_err()
    });
    Ok(Some(Indexed {
        known: Known {
            position: mark.position,
            games,
            lost,
            deleted,
            ledger: Ledger::unpack(&mark.ledger).map(|(ledger, _)| ledger),
        },
        survivors: rows,
        next: mark.next,
        games: mark.games,
    }))
}

/// Calls sled, and turns a panic into an error.
fn contained<T, E: std::fmt::Display>(call: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match contain(call) {
        Ok(called) => called.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("sled panicked: {panic}")),
    }
}
