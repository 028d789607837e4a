//! The index of one volume: the games in memory, and a sled database from which they are read when the store opens.
//!
//! The database is written when a chunk is full, when the volume is sealed, at intervals, and when the store closes. More frequent writes
//! would gain nothing, because games that a crash removes from it are read from the log again. The database of a sealed volume is closed
//! after use.
//!
//! sled 0.34 can panic on damaged files, so a panic in a call of sled is caught and becomes an error. Its background flush is off.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use service::contain;
use sled::{Batch, Db};

use super::{
    chunk::{self, CHUNK_GAMES, Chunk, Row},
    entry::{self, CHUNKS, DELETED, FORMAT, LOST, MARK, Mark},
    error::IndexError,
    orders::{Listed, Orders},
};
use crate::{
    log::{
        frame::Id,
        recover::{Indexed, Survivor},
        volume::{Known, Progress, Volume},
    },
    record,
};

/// Size of sled's segments in bytes. It is small, so that the index of a small volume is small.
const SEGMENT_BYTES: usize = 512 * 1024;

/// Size of sled's page cache for each open database, in bytes.
const PAGE_CACHE_BYTES: u64 = 4 * 1024 * 1024;

/// Maximum time that a database which this process has just closed may take to release its lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of games that are looked up in the volume at a time.
const BATCH_GAMES: usize = 512;

/// The index of one volume.
#[derive(Debug)]
pub struct VolumeIndex {
    first: u64,
    /// Folder of the database; empty for an index in memory.
    folder: PathBuf,
    /// Held while the index is brought up to date, and while it is discarded.
    written: Mutex<Written>,
    /// `None` while the database is closed.
    database: Mutex<Option<Db>>,
    orders: Mutex<Orders>,
    /// Every game below this sequence number is in `orders`.
    next: AtomicU64,
    /// True if the index has a game that cannot be read. No mark is written then, so that the next opening scans the volume.
    is_distrusted: AtomicBool,
}

/// Progress of the database.
#[derive(Debug, Default)]
struct Written {
    /// The mark in the database.
    mark: Option<Mark>,
    /// True if the database has changes that may not be on the disk.
    is_dirty: bool,
    /// First sequence number of the last chunk, which is not full.
    begin: u64,
    /// Games from `begin` on, in the database or not.
    rows: Vec<Row>,
}

impl Written {
    fn new(first: u64) -> Self {
        Self {
            begin: first,
            ..Self::default()
        }
    }
}

impl VolumeIndex {
    /// Returns an empty index with a closed database in `folder`.
    pub fn closed(folder: &Path, first: u64) -> Self {
        Self {
            first,
            folder: folder.into(),
            written: Mutex::new(Written::new(first)),
            database: Mutex::new(None),
            orders: Mutex::default(),
            next: AtomicU64::new(first),
            is_distrusted: AtomicBool::new(false),
        }
    }

    /// Returns an empty index without a database.
    pub fn in_memory(first: u64) -> Self {
        Self::closed(Path::new(""), first)
    }

    /// True if the index has a database.
    fn is_kept(&self) -> bool {
        !self.folder.as_os_str().is_empty()
    }

    /// Opens the database in `folder`, or creates it.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] with sled's message.
    pub fn open(folder: &Path, first: u64) -> Result<Self, IndexError> {
        let volume = Self::closed(folder, first);
        volume.reopen()?;
        Ok(volume)
    }

    /// Opens the database if it is closed.
    fn reopen(&self) -> Result<Db, IndexError> {
        let mut database = self.database.lock();
        if let Some(database) = &*database {
            return Ok(database.clone());
        }
        let config = sled::Config::new()
            .path(&self.folder)
            .flush_every_ms(None)
            .use_compression(false)
            .segment_size(SEGMENT_BYTES)
            .cache_capacity(PAGE_CACHE_BYTES);
        let began = Instant::now();
        let opened = loop {
            match contained(|| config.open()) {
                Err(IndexError::Damaged(reason))
                    if reason.contains("could not acquire lock") && began.elapsed() < LOCK_TIMEOUT =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        *database = Some(opened.clone());
        Ok(opened)
    }

    /// Closes the database and removes its files and the games in memory.
    pub fn discard(&self) {
        let mut written = self.written.lock();
        *self.database.lock() = None;
        *written = Written::new(self.first);
        *self.orders.lock() = Orders::default();
        self.next.store(self.first, Ordering::SeqCst);
        if self.is_kept()
            && let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot remove a damaged index");
        }
    }

    /// Reads the whole index of the volume and closes the database. Returns `None` if the database is new.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] if it cannot be read, is incomplete, or is of another version.
    pub fn load(&self) -> Result<Option<Indexed>, IndexError> {
        let database = self.reopen()?;
        let damaged = |reason: &str| IndexError::Damaged(reason.into());
        let Some(mark) = contained(|| database.get(MARK))? else {
            return match contained(|| database.first())? {
                None => Ok(None),
                Some(_) => Err(damaged("it was interrupted before its first mark")),
            };
        };
        let mark: Mark = serde_json::from_slice(&mark).map_err(|_| damaged("it is of another version"))?;
        if (mark.format, mark.first) != (FORMAT, self.first) {
            return Err(damaged("it is of another version, or of another volume"));
        }
        let lost: Vec<(u64, Option<Id>)> = list(&database, LOST)?;
        let deleted: Vec<u64> = list(&database, DELETED)?;
        if (lost.len(), deleted.len()) != (mark.lost, mark.deleted) {
            return Err(damaged("lost or deleted games are missing"));
        }
        let mut known = Known {
            position: mark.position(),
            ledger: mark.ledger(),
            ..Known::default()
        };
        let is_lost: HashSet<u64> = lost.iter().map(|(sequence, _)| *sequence).collect();
        let is_deleted: HashSet<u64> = deleted.iter().copied().collect();
        let mut survivors = Vec::with_capacity(mark.games);
        let mut written = Written::new(self.first);
        let mut orders = Orders::default();
        let mut next = self.first;
        let chunks = contained(|| {
            database
                .scan_prefix(CHUNKS)
                .values()
                .collect::<sled::Result<Vec<_>>>()
        })?;
        for value in chunks {
            let chunk = Chunk::unpack(&value).ok_or_else(|| damaged("a chunk of games cannot be read"))?;
            if chunk.begin != next {
                return Err(damaged("a chunk of games is missing"));
            }
            next = chunk.end;
            let labels: Vec<u32> = chunk
                .labels
                .iter()
                .map(|texts| orders.labels.number(texts))
                .collect();
            let is_full = chunk.rows.len() >= CHUNK_GAMES;
            written.begin = if is_full { chunk.end } else { chunk.begin };
            written.rows.clear();
            for mut row in chunk.rows {
                row.listed.labels = row
                    .listed
                    .labels
                    .map(|label| labels.get(label as usize).copied().unwrap_or_default());
                orders.add(row.listed);
                if !is_full {
                    written.rows.push(row);
                }
                let sequence = row.listed.sequence;
                if is_lost.contains(&sequence) {
                    continue;
                }
                known.games.push((sequence, row.id, row.extent));
                if !is_deleted.contains(&sequence) {
                    survivors.push(Survivor {
                        sequence,
                        id: row.id,
                        trainable: row.trainable,
                        bytes: row.bytes,
                        replaces: row.replaces,
                    });
                }
            }
        }
        if (next, orders.count()) != (mark.next, mark.games) {
            return Err(damaged("games are missing"));
        }
        known.lost = lost;
        known.deleted = deleted;
        written.mark = Some(mark);
        self.next.store(next, Ordering::SeqCst);
        *self.written.lock() = written;
        *self.orders.lock() = orders;
        drop(database);
        *self.database.lock() = None;
        Ok(Some(Indexed { known, survivors }))
    }

    /// Brings the index up to the end of the volume's log. `is_sealed` means that the volume will not grow. With `is_due`, the database
    /// is brought up to date as well and flushed to the disk.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] with sled's message.
    pub fn follow(&self, volume: &Volume, is_sealed: bool, is_due: bool) -> Result<(), IndexError> {
        let mut written = self.written.lock();
        let progress = volume.progress();
        let read = self.read_games(volume, &progress, &mut written.rows);
        if !self.is_kept() || self.is_distrusted.load(Ordering::SeqCst) {
            return Ok(());
        }
        let is_due = is_due || is_sealed;
        let is_changed = written.mark.as_ref().is_none_or(|mark| {
            (mark.offset, mark.lost, mark.deleted)
                != (progress.position.offset, progress.lost, progress.deleted)
        });
        let is_full = read > 0 && written.rows.len() >= CHUNK_GAMES;
        let has_lists_changed = written
            .mark
            .as_ref()
            .is_some_and(|mark| (mark.lost, mark.deleted) != (progress.lost, progress.deleted));
        if is_changed && (is_due || is_full || has_lists_changed) {
            self.write(volume, &progress, &mut written)?;
        }
        if is_due && written.is_dirty {
            let database = self.reopen()?;
            contained(|| database.flush())?;
            written.is_dirty = false;
        }
        if is_sealed {
            *self.database.lock() = None;
        }
        Ok(())
    }

    /// Reads the new games up to `progress` and returns their number.
    fn read_games(&self, volume: &Volume, progress: &Progress, rows: &mut Vec<Row>) -> usize {
        let mut read = 0;
        while self.next() < progress.next {
            let mut games = volume.games_from(self.next(), BATCH_GAMES);
            games.retain(|(sequence, _)| *sequence < progress.next);
            let Some(&(newest, _)) = games.last() else {
                break;
            };
            for (sequence, extent) in games {
                if volume.lost(sequence).is_some() {
                    continue;
                }
                let found = volume
                    .read(sequence)
                    .ok()
                    .and_then(|record| record::summary(&record).ok().map(|game| (record.len(), game)));
                let Some((bytes, game)) = found else {
                    self.distrust();
                    continue;
                };
                let mut orders = self.orders.lock();
                let listed = Listed {
                    sequence,
                    finished_at_ms: game.game.finished_at_ms,
                    positions: game.positions,
                    surprise: entry::surprise(&game),
                    labels: orders.labels.of(&game),
                };
                orders.add(listed);
                read += 1;
                rows.push(Row {
                    id: game.id,
                    extent,
                    trainable: game.trainable,
                    bytes: bytes as u32,
                    replaces: game.replaces(),
                    listed,
                });
            }
            self.next.store(newest + 1, Ordering::SeqCst);
        }
        self.next.fetch_max(progress.next, Ordering::SeqCst);
        read
    }

    /// Writes everything up to `progress` to the database in one atomic batch.
    fn write(&self, volume: &Volume, progress: &Progress, written: &mut Written) -> Result<(), IndexError> {
        let failed = |error: &dyn std::fmt::Display| IndexError::Damaged(error.to_string());
        let database = self.reopen()?;
        let mut batch = Batch::default();
        let mut begin = written.begin;
        let mut kept = 0;
        let games = {
            let orders = self.orders.lock();
            for rows in written.rows.chunks(CHUNK_GAMES) {
                let is_full = rows.len() == CHUNK_GAMES;
                let end = match rows.last() {
                    Some(last) if is_full => last.listed.sequence + 1,
                    _ => progress.next,
                };
                let value =
                    Chunk::pack(begin, end, rows, orders.labels.texts()).map_err(|error| failed(&error))?;
                batch.insert(entry::chunk_key(begin), value);
                if is_full {
                    begin = end;
                    kept += rows.len();
                }
            }
            orders.count()
        };
        if kept == written.rows.len() && begin < progress.next {
            let value = Chunk::pack(begin, progress.next, &[], &[]).map_err(|error| failed(&error))?;
            batch.insert(entry::chunk_key(begin), value);
        }
        // These lists may be newer than `progress`. The part of the log after that position is read again, which does not change them.
        let (lost, deleted) = (volume.all_lost(), volume.all_deleted());
        let mark = Mark {
            lost: lost.len(),
            deleted: deleted.len(),
            ..Mark::new(self.first, progress, games)
        };
        let last = written.mark.as_ref();
        if last.is_none_or(|last| last.lost != mark.lost) {
            let packed = serde_json::to_vec(&lost).map_err(|error| failed(&error))?;
            batch.insert(LOST, chunk::checked(&packed).map_err(|error| failed(&error))?);
        }
        if last.is_none_or(|last| last.deleted != mark.deleted) {
            let packed = serde_json::to_vec(&deleted).map_err(|error| failed(&error))?;
            batch.insert(DELETED, chunk::checked(&packed).map_err(|error| failed(&error))?);
        }
        batch.insert(MARK, serde_json::to_vec(&mark).map_err(|error| failed(&error))?);
        contained(|| database.apply_batch(batch))?;
        written.rows.drain(..kept);
        written.begin = begin;
        written.mark = Some(mark);
        written.is_dirty = true;
        if self.is_distrusted.load(Ordering::SeqCst) {
            self.distrust();
        }
        Ok(())
    }

    /// Makes the next opening of the store scan this volume.
    pub fn distrust(&self) {
        self.is_distrusted.store(true, Ordering::SeqCst);
        if !self.is_kept() {
            return;
        }
        let removed = self
            .reopen()
            .and_then(|database| contained(|| database.remove(MARK).and_then(|_| database.flush())));
        if let Err(error) = removed {
            tracing::warn!(volume = self.first, %error, "cannot mark an index as incomplete");
        }
    }

    /// Returns the games in memory.
    pub fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock()
    }

    /// Returns the sequence number below which every game is in memory.
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// Returns the first sequence number of the volume.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the folder of the database.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads a list of lost or deleted games.
fn list<T: serde::de::DeserializeOwned>(database: &Db, key: &[u8]) -> Result<Vec<T>, IndexError> {
    let value = contained(|| database.get(key))?;
    value
        .and_then(|value| chunk::unchecked(&value))
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| IndexError::Damaged("a list of games cannot be read".into()))
}

/// Calls sled, and turns a panic into an error.
fn contained<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, IndexError> {
    contained_with(|| call().map_err(|error| error.to_string()))
}

fn contained_with<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, IndexError> {
    match contain(call) {
        Ok(called) => called.map_err(IndexError::Damaged),
        Err(panic) => Err(IndexError::Damaged(format!("sled panicked: {panic}"))),
    }
}
