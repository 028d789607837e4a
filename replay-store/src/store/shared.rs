//! StoreState that the threads of a store share.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, RwLock};
use proto::ids::hex;
use service::log_throttle::LogThrottle;
use tokio::sync::{Notify, watch};

use crate::{
    error::StoreFailed,
    index::Index,
    log::{drawn::DrawnBatches, files::Files, frame::Id, ledger::SharedLedger, volume::Volumes},
    metrics::Metrics,
    record::validate::Validator,
    settings::Settings,
    window::{Window, cache::Cache, catalog::Catalog, uses_bound::UsesBound},
};

/// StoreState of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoreState {
    /// The store works.
    #[default]
    Running,
    /// The store has stopped after a failure.
    Failed(StoreFailed),
    /// The store was closed.
    Closed,
}

/// Shared state of an open store. Locks are held briefly. Those of `drawn` and of the writes of the ledger are held during disk
/// access, and are therefore not taken on async threads.
#[derive(Debug)]
pub struct Shared {
    /// The disk.
    pub files: Arc<dyn Files>,
    /// Settings of the store.
    pub settings: Settings,
    /// Checks games before they are stored.
    pub validator: Validator,
    /// The volumes.
    pub volumes: Volumes,
    /// Index of the log; `None` if the store was opened without one.
    pub index: Option<Index>,
    /// Prometheus metrics.
    pub(crate) metrics: Metrics,
    /// Games that batches are drawn from.
    pub window: RwLock<Window>,
    /// Sequence numbers of the games in the volumes by their ids, deleted games included. An actor sends a game again if the
    /// acknowledgement was lost; a game whose id is here is not stored twice.
    pub known_ids: RwLock<HashMap<Id, u64>>,
    /// Values by which games are listed.
    pub catalog: RwLock<Catalog>,
    /// Cache of decoded games.
    pub cache: Cache,
    /// The ledger.
    pub ledger: SharedLedger,
    /// Training batches that were drawn.
    pub drawn: Mutex<DrawnBatches>,
    /// Games found unreadable since the store was opened.
    pub unreadable: Mutex<BTreeSet<u64>>,
    /// Counts of waiting batches and games.
    pub uses_bound: UsesBound,
    /// Number of trainable positions in the window; waiting batches subscribe to it.
    pub positions: watch::Sender<u64>,
    /// StoreState of the store.
    pub state: watch::Sender<StoreState>,
    /// Volumes whose end is at most this sequence number are archived. `u64::MAX` without an archive.
    pub archived_to: AtomicU64,
    /// Notified when a volume is sealed.
    pub sealed: Notify,
    /// Limits the log lines about a lack of disk space.
    pub room_warning: LogThrottle,
    /// Limits the log lines about batches that cannot be remembered.
    pub batch_warning: LogThrottle,
}

impl Shared {
    /// Reports to the metrics how many indexes were discarded since the store was opened. They are rebuilt from the log.
    pub fn report_index(&self) {
        if let Some(index) = &self.index {
            self.metrics.index_rebuilds.absolute(index.discarded());
        }
    }

    /// Writes the changes of all volumes to the index.
    pub fn write_index(&self) {
        if let Some(index) = &self.index {
            self.volumes.all().iter().for_each(|volume| index.write(volume));
        }
    }

    /// Publishes the number of positions in the window to waiting batches.
    pub fn announce(&self) {
        let positions = self.window.read().positions();
        self.positions.send_replace(positions);
    }

    /// Excludes an unreadable game from sampling, counts it and logs it, once. The next opening scans the volume of the game, and
    /// records the game as lost if it still cannot be read. Does nothing in a closed store, which has no volumes to read from.
    pub fn mark_unreadable(&self, sequence: u64, reason: &str) {
        if self.volumes.newest().is_none() {
            return;
        }
        let was_sampled = self.window.write().exclude(sequence);
        if self.unreadable.lock().insert(sequence) {
            self.metrics.damaged.increment(1);
            let volume = self.volumes.holding(sequence);
            if let (Some(index), Some(volume)) = (&self.index, &volume) {
                index.forget(volume.first());
            }
            self.report_index();
            let id = volume.and_then(|volume| volume.name(sequence));
            let id = id.map_or_else(|| "unknown".to_owned(), |id| hex(&id));
            tracing::error!(
                sequence,
                id,
                reason,
                "a stored game cannot be read; it is not sampled any more"
            );
        }
        if was_sampled {
            self.announce();
        }
    }

    /// Returns the number of sealed volumes that are not archived.
    pub fn unarchived(&self) -> usize {
        let to = self.archived_to.load(Ordering::SeqCst);
        let sealed = self.volumes.sealed();
        sealed.iter().filter(|(_, end)| *end > to).count()
    }

    /// Stops the store permanently.
    pub fn fail(&self, failure: StoreFailed) {
        self.state.send_if_modified(|state| {
            let is_first = *state == StoreState::Running;
            if is_first {
                tracing::error!(reason = failure.reason, "the store has failed");
                *state = StoreState::Failed(failure);
            }
            is_first
        });
    }

    /// Sets the state to closed.
    pub fn close(&self) {
        self.state.send_replace(StoreState::Closed);
    }

    /// Logs a lack of disk space, at most once a minute.
    pub fn warn_of_room(&self, no_room: &dyn std::fmt::Display) {
        if self.room_warning.allows() {
            tracing::warn!(%no_room, "games are refused until there is room");
        }
    }
}

/// Returns the folder of the volumes.
pub fn volumes_folder(folder: &Path) -> PathBuf {
    folder.join("volumes")
}

/// Returns the folder of the volume that begins with this sequence number.
pub fn volume_folder(folder: &Path, first: u64) -> PathBuf {
    volumes_folder(folder).join(format!("{first:020}"))
}

/// Contents of the newest volume.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fill {
    /// Number of positions; a game without trainable positions counts as one.
    pub positions: u64,
    /// Total length of the records in bytes.
    pub bytes: u64,
}
