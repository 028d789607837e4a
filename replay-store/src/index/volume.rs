//! The index of one volume: a sled database.
//!
//! sled 0.34 can panic on damaged files, so every call into it is contained, and a panic becomes an error. Its background
//! flush is off: the database is flushed when the volume is sealed and when the store closes. Flushing more often would
//! gain nothing, since entries that a crash loses are read from the log again.

use std::{
    fs,
    ops::Bound,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use service::contain::contain;
use sled::{Batch, Db};

use super::{
    IndexError,
    entry::{self, Entry, FORMAT, KeyCounts, MARK, Mark, Order, Place},
};
use crate::{
    log::{
        recover::{Indexed, Survivor},
        volume::{Known, Progress, Volume},
    },
    record,
};

/// Size of sled's segments: small, so that the index of a small volume stays small.
const SEGMENT_BYTES: usize = 512 * 1024;

/// sled's page cache for each volume.
const PAGE_CACHE_BYTES: u64 = 4 * 1024 * 1024;

/// How long a database that this process has just closed may take to release its lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Games written to the index in one atomic batch.
const BATCH_GAMES: usize = 512;

/// The index of one volume.
#[derive(Debug)]
pub struct VolumeIndex {
    first: u64,
    folder: PathBuf,
    /// Held while the index is brought up to date, and while it is discarded.
    work: Mutex<()>,
    /// `None` if it could not be opened, or was found damaged.
    database: RwLock<Option<Db>>,
    /// Every game below this sequence number is in the database.
    next: AtomicU64,
    /// The mark in the database.
    mark: RwLock<Option<Mark>>,
    /// Number of keys in the orders.
    keys: RwLock<KeyCounts>,
    /// Kinds of orders (bits, by [`Order::kind`]) whose keys this process has counted or written.
    counted: AtomicU32,
    /// A game that the index has cannot be read: no mark is written, so that the next opening scans the volume.
    is_distrusted: AtomicBool,
}

impl VolumeIndex {
    /// An index without a database, in `folder`.
    pub fn closed(folder: &Path, first: u64) -> Self {
        Self {
            first,
            folder: folder.into(),
            work: Mutex::new(()),
            database: RwLock::new(None),
            next: AtomicU64::new(first),
            mark: RwLock::new(None),
            keys: RwLock::default(),
            counted: AtomicU32::new(u32::MAX),
            is_distrusted: AtomicBool::new(false),
        }
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
        let mut database = self.database.write();
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
                    if reason.contains("could not acquire lock") && began.elapsed() < LOCK_PATIENCE =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        *database = Some(opened.clone());
        Ok(opened)
    }

    /// Closes the database and removes its files.
    pub fn discard(&self) {
        let _work = self.work.lock();
        *self.database.write() = None;
        *self.mark.write() = None;
        *self.keys.write() = KeyCounts::default();
        self.counted.store(u32::MAX, Ordering::SeqCst);
        self.next.store(self.first, Ordering::SeqCst);
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.folder.display(), %error, "cannot remove a damaged index");
        }
    }

    /// Reads the whole index of the volume; `None` if it is new.
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
        let mut indexed = Indexed {
            known: Known {
                position: mark.position(),
                ledger: mark.ledger(),
                ..Known::default()
            },
            survivors: Vec::new(),
        };
        let next = contained_with(|| fill(&database, &mut indexed, &mark, self.first))?;
        if next != mark.next
            || (indexed.known.lost.len(), indexed.known.deleted.len()) != (mark.lost, mark.deleted)
        {
            return Err(damaged("entries are missing"));
        }
        self.next.store(mark.next, Ordering::SeqCst);
        *self.keys.write() = mark.keys;
        self.counted.store(0, Ordering::SeqCst);
        *self.mark.write() = Some(mark);
        Ok(Some(indexed))
    }

    /// Brings the index up to the end of the volume's log. `is_sealed`: the volume will not grow.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] with sled's message.
    pub fn follow(&self, volume: &Volume, is_sealed: bool) -> Result<(), IndexError> {
        let _work = self.work.lock();
        let progress = volume.progress();
        let last = self.mark.read().clone();
        let is_up = last.as_ref().is_some_and(|mark| {
            let Progress {
                position,
                lost,
                deleted,
                ..
            } = &progress;
            (mark.offset, mark.lost, mark.deleted) == (position.offset, *lost, *deleted)
        });
        if is_up || self.is_distrusted.load(Ordering::SeqCst) && self.next() >= progress.next {
            return Ok(());
        }
        let database = self.reopen()?;
        loop {
            let games = volume.games_from(self.next(), BATCH_GAMES);
            let Some(&(newest, _)) = games.last() else {
                break;
            };
            let mut batch = Batch::default();
            let mut added = KeyCounts::default();
            for (sequence, extent) in games {
                if volume.lost(sequence).is_some() {
                    continue;
                }
                let Some((record, game)) = volume
                    .read(sequence)
                    .ok()
                    .and_then(|record| record::summary(&record).ok().map(|game| (record, game)))
                else {
                    self.distrust();
                    continue;
                };
                let entry = Entry::Game {
                    id: game.id,
                    extent,
                    trainable: game.trainable,
                    bytes: record.len() as u32,
                    is_deleted: false,
                };
                batch.insert(entry::game_key(sequence).to_vec(), entry.pack());
                let keys = entry::order_keys(sequence, &game);
                added.games += 1;
                added.models += keys.iter().filter(|key| key.first() == Some(&b'm')).count() as u64;
                for key in keys {
                    batch.insert(key, Vec::new());
                }
            }
            contained(|| database.apply_batch(batch))?;
            let mut keys = self.keys.write();
            keys.games += added.games;
            keys.models += added.models;
            self.next.store(newest + 1, Ordering::SeqCst);
        }
        self.next.fetch_max(progress.next, Ordering::SeqCst);
        let (lost, deleted) = last.map_or((0, 0), |mark| (mark.lost, mark.deleted));
        let mut batch = Batch::default();
        if lost != progress.lost {
            for (sequence, id) in volume.all_lost() {
                batch.insert(entry::game_key(sequence).to_vec(), Entry::Lost(id).pack());
            }
        }
        if deleted != progress.deleted {
            for sequence in volume.all_deleted() {
                let key = entry::game_key(sequence);
                let found = contained(|| database.get(key))?;
                if let Some(Entry::Game {
                    id,
                    extent,
                    trainable,
                    bytes,
                    ..
                }) = found.and_then(|packed| Entry::unpack(&packed))
                {
                    let is_deleted = true;
                    let entry = Entry::Game {
                        id,
                        extent,
                        trainable,
                        bytes,
                        is_deleted,
                    };
                    batch.insert(key.to_vec(), entry.pack());
                }
            }
        }
        if self.is_distrusted.load(Ordering::SeqCst) {
            contained(|| database.apply_batch(batch))?;
            return Ok(());
        }
        let target = Mark::new(self.first, &progress, *self.keys.read());
        let packed = serde_json::to_vec(&target).map_err(|error| IndexError::Damaged(error.to_string()))?;
        batch.insert(MARK, packed);
        contained(|| database.apply_batch(batch))?;
        *self.mark.write() = Some(target);
        if is_sealed {
            contained(|| database.flush())?;
        }
        Ok(())
    }

    /// Returns at most `limit` places of an order, from after `after` on (or from its beginning).
    ///
    /// # Errors
    /// [`IndexError::Damaged`] with sled's message.
    pub fn places(
        &self,
        order: Order,
        after: Option<Place>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<Place>, IndexError> {
        let database = self.reopen()?;
        self.count(order, &database)?;
        let edge = |value| {
            order.key(Place {
                value,
                sequence: value,
            })
        };
        let (low, high) = (Bound::Included(edge(0)), Bound::Included(edge(u64::MAX)));
        let after = after.map(|place| Bound::Excluded(order.key(place)));
        let range = match descending {
            true => (low, after.unwrap_or(high)),
            false => (after.unwrap_or(low), high),
        };
        contained_with(|| {
            let keys = database.range(range);
            let place = |found: sled::Result<(sled::IVec, sled::IVec)>| {
                let (key, _) = found.map_err(|error| error.to_string())?;
                Order::place(&key).ok_or_else(|| "a key is too short".to_owned())
            };
            match descending {
                true => keys
                    .rev()
                    .take(limit)
                    .map(place)
                    .collect::<Result<Vec<_>, String>>(),
                false => keys.take(limit).map(place).collect(),
            }
        })
    }

    /// Counts the keys of a kind of order, once after each opening: sled drops what it cannot read at its end without an
    /// error, and nothing else would reveal a missing key.
    fn count(&self, order: Order, database: &Db) -> Result<(), IndexError> {
        let (tag, number) = order.kind();
        if self.counted.load(Ordering::SeqCst) & (1 << number) != 0 {
            return Ok(());
        }
        let Some(mark) = self.mark.read().clone() else {
            return Ok(());
        };
        let expected = match order {
            Order::Model(_) => mark.keys.models,
            _ => mark.keys.games,
        };
        let found = contained_with(|| {
            let mut count = 0;
            for key in database.scan_prefix([tag]).keys() {
                key.map_err(|error| error.to_string())?;
                count += 1;
            }
            Ok(count)
        })?;
        if found < expected {
            let reason = format!("{} keys of an order are missing", expected - found);
            return Err(IndexError::Damaged(reason));
        }
        self.counted.fetch_or(1 << number, Ordering::SeqCst);
        Ok(())
    }

    /// Writes everything to the disk.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] with sled's message.
    pub fn flush(&self) -> Result<(), IndexError> {
        match self.database.read().clone() {
            Some(database) => contained(|| database.flush()).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Makes the next opening of the store scan this volume.
    pub fn distrust(&self) {
        self.is_distrusted.store(true, Ordering::SeqCst);
        let database = self.database.read().clone();
        if let Some(database) = database
            && let Err(error) = contained(|| database.remove(MARK).and_then(|_| database.flush()))
        {
            tracing::warn!(volume = self.first, %error, "cannot mark an index as incomplete");
        }
    }

    /// Every game below this sequence number is in the database.
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::SeqCst)
    }

    /// First sequence number of the volume.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Folder of the database.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Reads all entries below the mark; returns the end of the unbroken run of sequence numbers from `first` on.
fn fill(database: &Db, indexed: &mut Indexed, mark: &Mark, first: u64) -> Result<u64, String> {
    let mut next = first;
    for found in database.range(entry::game_key(first)..entry::game_key(mark.next)) {
        let (key, value) = found.map_err(|error| error.to_string())?;
        let (Some(sequence), Some(entry)) = (entry::sequence(&key), Entry::unpack(&value)) else {
            return Err("an entry cannot be read".into());
        };
        if sequence != next {
            return Err(format!("the entry of game {next} is missing"));
        }
        next += 1;
        match entry {
            Entry::Lost(id) => indexed.known.lost.push((sequence, id)),
            Entry::Game {
                id,
                extent,
                trainable,
                bytes,
                is_deleted,
            } => {
                indexed.known.games.push((sequence, id, extent));
                if is_deleted {
                    indexed.known.deleted.push(sequence);
                } else {
                    indexed.survivors.push(Survivor {
                        sequence,
                        id,
                        trainable,
                        bytes,
                    });
                }
            }
        }
    }
    Ok(next)
}

/// Runs a call into sled; a panic becomes an error.
fn contained<T>(call: impl FnOnce() -> sled::Result<T>) -> Result<T, IndexError> {
    contained_with(|| call().map_err(|error| error.to_string()))
}

fn contained_with<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, IndexError> {
    match contain(call) {
        Ok(called) => called.map_err(IndexError::Damaged),
        Err(panic) => Err(IndexError::Damaged(format!("sled panicked: {panic}"))),
    }
}
