//! What the writer and the readers of a store share.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, watch};

use crate::{
    error::StoreFailed,
    index::Index,
    log::{files::Files, ids::KnownIds, ledger::Keeper, volumes::Volumes},
    metrics::Metrics,
    settings::Settings,
    window::{Window, cache::Cache, uses_bound::Gate},
};

/// Whether the store works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It does.
    #[default]
    Running,
    /// It has stopped for good.
    Failed(StoreFailed),
    /// It was closed in order.
    Closed,
}

/// How often a lack of room is logged.
const ROOM_WARNING: Duration = Duration::from_secs(60);

/// The parts of an open store. Locks are held briefly and never across reads or writes of the disk, but for
/// the ledger's own small file.
#[derive(Debug)]
pub struct Shared {
    /// The disk.
    pub files: Arc<dyn Files>,
    /// What it was told.
    pub settings: Settings,
    /// The volumes.
    pub volumes: Arc<Volumes>,
    /// Index of the log; `None` if the store was opened without one.
    pub index: Option<Arc<Index>>,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// What is sampled from.
    pub window: RwLock<Window>,
    /// Every id that is remembered.
    pub known: RwLock<KnownIds>,
    /// Decoded games.
    pub cache: Cache,
    /// The ledger.
    pub keeper: Mutex<Keeper>,
    /// Games found unreadable since the store was opened.
    pub unreadable: Mutex<BTreeSet<u64>>,
    /// Who waits for the other side.
    pub gate: Gate,
    /// Positions in the window, for those who wait for more.
    pub positions: watch::Sender<u64>,
    /// Whether the store works.
    pub state: watch::Sender<State>,
    /// Volumes that end below this sequence number are in the archive; all are as good as that where there is none.
    pub archived_to: AtomicU64,
    /// Rung when a volume was sealed.
    pub sealed: Notify,
    /// When a lack of room was last logged.
    pub room_warning: Mutex<Option<Instant>>,
}

impl Shared {
    /// Tells the index that the log has changed.
    pub fn notify_index(&self) {
        if let Some(index) = &self.index {
            index.notify();
            self.metrics.index_rebuilt(index.rebuilt());
        }
    }

    /// Reports the size of the window to the metrics.
    pub fn report_window(&self, window: &Window) {
        self.metrics
            .window_changed(window.games(), window.positions(), window.bytes());
    }

    /// Tells those who wait how many positions there are.
    pub fn announce(&self) {
        let positions = self.window.read().positions();
        self.positions.send_replace(positions);
    }

    /// Takes an unreadable game out of the window, once, and says so. When the store is opened next, the
    /// game is looked for in the raw files, and counted as damaged if it is not there either.
    pub fn lose(&self, sequence: u64, reason: &str) {
        if self.window.write().lose(sequence) {
            self.unreadable.lock().insert(sequence);
            self.metrics.damaged(1);
            // The next opening scans the volume, finds the loss, and records it.
            if let (Some(index), Some(volume)) = (&self.index, self.volumes.holding(sequence)) {
                index.distrust(volume.first());
            }
            tracing::error!(
                sequence,
                reason,
                "a stored game cannot be read; it is not sampled any more"
            );
            self.announce();
        }
    }

    /// Sealed volumes that are not in the archive yet.
    pub fn unarchived(&self) -> usize {
        let to = self.archived_to.load(Ordering::SeqCst);
        let sealed = self.volumes.sealed();
        sealed.iter().filter(|(_, end)| *end > to).count()
    }

    /// Stops the store for good.
    pub fn fail(&self, failure: StoreFailed) {
        self.state.send_if_modified(|state| {
            let is_first = *state == State::Running;
            if is_first {
                tracing::error!(reason = failure.reason, "the store has failed");
                *state = State::Failed(failure);
            }
            is_first
        });
    }

    /// Says that the store was closed in order.
    pub fn close(&self) {
        self.state.send_replace(State::Closed);
    }

    /// Logs a lack of room, now and then.
    pub fn warn_of_room(&self, no_room: &dyn std::fmt::Display) {
        let mut last = self.room_warning.lock();
        if last.is_none_or(|at| at.elapsed() >= ROOM_WARNING) {
            *last = Some(Instant::now());
            tracing::warn!(%no_room, "games are refused until there is room");
        }
    }
}

/// The folder of the volumes.
pub fn volumes_folder(folder: &Path) -> PathBuf {
    folder.join("volumes")
}

/// The folder of the volume that begins with this sequence number.
pub fn volume_folder(folder: &Path, first: u64) -> PathBuf {
    volumes_folder(folder).join(format!("{first:020}"))
}

/// How full the newest volume is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fill {
    /// Positions (a game without trainable ones counts as one).
    pub positions: u64,
    /// Bytes of the records.
    pub bytes: u64,
}
