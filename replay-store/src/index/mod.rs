//! The index of the log: the place of each game, and the games in order of time, length and surprise, with the texts by which they are
//! filtered.
//!
//! The log is authoritative. A thread adds games to the index after they were acknowledged, and records for each volume the position up
//! to which the index is complete. With the index, the store opens without reading its games, and lists them in each order. An index that
//! is missing, damaged, of another version or behind the log is rebuilt or completed from the log; deleting its folder loses nothing.
//!
//! Each volume has a sled database of its own, which is removed with the volume. One common database would not do, because sled does not
//! release the space of deleted entries if insertions are at one end and deletions at the other. A database holds the games in chunks of
//! columns, so that opening reads few values; orders are sorted in memory.
//!
//! | module | contents |
//! |---|---|
//! | [`entry`] | keys of the database, and the record of what it covers |
//! | [`chunk`] | games as one value of the database |
//! | [`orders`] | the games of a volume, sorted in memory |
//! | [`volume`] | the index of one volume |
//! | [`follow`] | the thread that keeps the index up with the log |
//! | [`page`] | pages of games in an order |

pub mod chunk;
pub mod entry;
mod error;
pub mod follow;
pub mod orders;
pub mod page;
pub mod volume;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::log::recover::Indexed;
pub use error::IndexError;
use volume::VolumeIndex;

/// The indexes of all volumes.
#[derive(Debug)]
pub struct Index {
    folder: PathBuf,
    /// False for an index in memory, which has no files.
    is_kept: bool,
    volumes: RwLock<BTreeMap<u64, Arc<VolumeIndex>>>,
    /// All games below this sequence number are indexed.
    reached: AtomicU64,
    /// Number of indexes that were rebuilt since the store was opened.
    rebuilt: AtomicU64,
    /// Wakes the thread that follows the log, and those that wait for it.
    wake: Condvar,
    caught_up: Condvar,
    state: Mutex<State>,
    is_closing: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// True if the log may have grown.
    has_news: bool,
}

impl Index {
    /// Opens the index in `folder`, which is created if it does not exist.
    ///
    /// # Errors
    /// The file system's error.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        Ok(Self {
            folder: folder.into(),
            is_kept: true,
            ..Self::in_memory()
        })
    }

    /// Returns an index in memory only, for a store that is open for reading.
    pub fn in_memory() -> Self {
        Self {
            folder: PathBuf::new(),
            is_kept: false,
            volumes: RwLock::default(),
            reached: AtomicU64::new(0),
            rebuilt: AtomicU64::new(0),
            wake: Condvar::new(),
            caught_up: Condvar::new(),
            state: Mutex::default(),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Opens the index of the volume that begins with sequence number `first`; returns its contents, or `None` if it is
    /// missing or cannot be used, so that the volume must be scanned.
    pub fn load(&self, first: u64) -> Option<Indexed> {
        if !self.is_kept {
            return None;
        }
        let folder = self.volume_folder(first);
        let (volume, indexed) = match VolumeIndex::open(&folder, first) {
            Ok(volume) => match volume.load() {
                Ok(indexed) => (volume, indexed),
                Err(error) => {
                    tracing::warn!(volume = first, %error, "the index of a volume cannot be used and is rebuilt");
                    (self.discard(volume), None)
                }
            },
            Err(error) => {
                tracing::warn!(volume = first, %error, "the index of a volume cannot be opened and is rebuilt");
                (self.discard(VolumeIndex::closed(&folder, first)), None)
            }
        };
        self.volumes.write().insert(first, Arc::new(volume));
        indexed
    }

    /// Discards the index of a volume, because it was made from another volume.
    pub fn reset(&self, first: u64) {
        let volume = VolumeIndex::closed(&self.volume_folder(first), first);
        self.volumes.write().insert(first, Arc::new(self.discard(volume)));
    }

    /// Returns an empty index of a volume with a closed database.
    fn closed(&self, first: u64) -> VolumeIndex {
        match self.is_kept {
            true => VolumeIndex::closed(&self.volume_folder(first), first),
            false => VolumeIndex::in_memory(first),
        }
    }

    /// Removes the files of an index. The thread that follows the log opens it again.
    fn discard(&self, volume: VolumeIndex) -> VolumeIndex {
        volume.discard();
        self.rebuilt.fetch_add(1, Ordering::SeqCst);
        volume
    }

    /// Removes the folders of volumes that no longer exist. Called after all volumes are loaded.
    pub fn sweep(&self) {
        let known: Vec<PathBuf> = self
            .volumes
            .read()
            .values()
            .map(|volume| volume.folder().into())
            .collect();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if !known.contains(&entry.path())
                && let Err(error) = fs::remove_dir_all(entry.path())
            {
                tracing::warn!(folder = %entry.path().display(), %error, "cannot remove the index of a removed volume");
            }
        }
    }

    /// Makes the next opening of the store scan this volume, because a game that the index has cannot be read.
    pub fn distrust(&self, first: u64) {
        if let Some(volume) = self.volumes.read().get(&first) {
            volume.distrust();
        }
    }

    /// Tells the thread that follows the log that the log has grown.
    pub fn notify(&self) {
        self.state.lock().has_news = true;
        self.wake.notify_one();
    }

    /// Waits until all games below sequence number `next` are indexed.
    ///
    /// # Errors
    /// [`IndexError::Behind`] if that takes longer than `timeout`.
    pub fn wait(&self, next: u64, timeout: Duration) -> Result<(), IndexError> {
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        while self.reached() < next {
            state.has_news = true;
            self.wake.notify_one();
            if self.caught_up.wait_until(&mut state, deadline).timed_out() && self.reached() < next {
                return Err(IndexError::Behind {
                    reached: self.reached().saturating_sub(1),
                    newest: next.saturating_sub(1),
                });
            }
        }
        Ok(())
    }

    /// Returns the number of indexes that were discarded since the store was opened.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt.load(Ordering::SeqCst)
    }

    /// Returns the sequence number below which all games are indexed.
    pub fn reached(&self) -> u64 {
        self.reached.load(Ordering::SeqCst)
    }

    fn volume_folder(&self, first: u64) -> PathBuf {
        self.folder.join(format!("{first:020}"))
    }

    fn volumes(&self) -> Vec<Arc<VolumeIndex>> {
        self.volumes.read().values().map(Arc::clone).collect()
    }
}
