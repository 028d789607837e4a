//! [`Store`]: the store without its gRPC service. Any number of threads can store games and draw batches.
//!
//! | module | contents |
//! |---|---|
//! | [`open`] | opening a store: reads every volume, fills the window, finds lost games |
//! | [`identity`] | the game and representation of a folder, and the lock that excludes a second process |
//! | [`append`], [`writer`] | storing games: the queue, and the thread that writes |
//! | [`sampling`] | drawing batches |
//! | [`reading`] | games by id and by filter, and pages of games in an order |
//! | [`archiver`] | writing sealed volumes to the archive |
//! | [`shared`] | the parts that the threads of a store share |

pub mod append;
pub mod archiver;
pub mod identity;
pub mod open;
pub mod reading;
pub mod sampling;
pub mod shared;
pub mod writer;

use std::{
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use proto::v1::{DeleteGamesReply, Game, StatsReply};
use service::contain;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::{
    error::{Damage, Loss, OpenError, StoreFailed, VolumeError},
    log::{
        files::{Files, Real},
        frame::Id,
        room::{self, FileSystem, Probe, Room},
    },
    metrics::Metrics,
    record::{
        self,
        validate::{Checked, Refusal},
    },
    settings::{MAX_COMMIT_GAMES, MAX_QUEUED_KIB, MAX_RECORD_BYTES, Settings},
    window::uses_bound::UsesBound,
};
use append::{Command, Pending, Reply, Verdict};
use archiver::{Archiver, Archiving};
use identity::Claim;
use shared::{Shared, StoreState};
use writer::Writer;

pub use reading::{Exported, GetError, Listing, Page};
pub use sampling::SampleError;

/// An open store. [`Store::close`] waits until all games are written. If the store is dropped instead, this happens in the background.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Command>,
    queued: Arc<Semaphore>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// The archiver thread; `None` without an archive.
    archiver: Mutex<Option<Archiving>>,
    /// Lock of a store that is open for reading. If the store is open for writing, the writer has the lock.
    _claim: Claim,
    is_read_only: bool,
    damage: Damage,
}

/// Use of the index when a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexUse {
    /// Games that are in the index are not read. Damage of a game is found when it is read.
    Trusted,
    /// Every game is read, and the index is written anew.
    Anew,
    /// Every game is read, and nothing is written to the index.
    Absent,
}

/// Parts with which a store opens its files. Tests replace them.
pub struct Opening {
    /// The disk.
    pub files: Arc<dyn Files>,
    /// Measures the space on the disk.
    pub probe: Box<dyn Probe>,
    /// True if a damaged store is repaired, false if it is refused.
    pub repairs: bool,
    /// Use of the index.
    pub index: IndexUse,
}

impl Opening {
    /// Opens the files in `folder` and repairs damage.
    pub fn of(folder: &Path) -> Self {
        Self {
            files: Arc::new(Real),
            probe: Box::new(FileSystem(folder.into())),
            repairs: true,
            index: IndexUse::Trusted,
        }
    }
}

/// Error: games cannot be deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteError {
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The store has stopped.
    #[error(transparent)]
    Failed(#[from] StoreFailed),
}

impl Store {
    /// Opens the store that `settings` describe, or creates it. Repairs damage.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let opening = Opening::of(&settings.folder);
        Self::open_with(settings, opening)
    }

    /// Opens an existing store for reading. Nothing on the disk is changed, damage is not repaired, and nothing can be stored,
    /// sampled or deleted. Every game is read once.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open_to_read(settings: Settings) -> Result<Self, OpenError> {
        let opened = open::open_to_read(settings, Arc::new(Real))?;
        // Without a receiver the queue refuses every game.
        let (queue, _) = mpsc::channel(1);
        Ok(Self {
            _claim: opened.claim,
            is_read_only: true,
            ..Self::new(Arc::new(opened.shared), queue, opened.damage)
        })
    }

    /// Opens a store as [`Store::open`] does, with the given parts.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open_with(settings: Settings, opening: Opening) -> Result<Self, OpenError> {
        let room = Room::new(opening.probe, settings.max_disk_bytes, settings.min_free_bytes);
        let opened = open::open(settings, opening.files, opening.repairs, opening.index)?;
        let shared = Arc::new(opened.shared);
        let (queue, waiting) = mpsc::channel(MAX_COMMIT_GAMES);
        let writer = Writer::new(Arc::clone(&shared), opened.claim, room, opened.fill);
        let writer = thread::Builder::new()
            .name("replay-writer".into())
            .spawn({
                let shared = Arc::clone(&shared);
                let mut waiting = waiting;
                move || {
                    match contain(|| writer.run(&mut waiting)) {
                        Ok(Ok(())) => shared.close(),
                        Ok(Err(failure)) => shared.fail(failure),
                        Err(panic) => shared.fail(StoreFailed {
                            reason: format!("the writer panicked: {panic}"),
                        }),
                    }
                    // A game that is being queued at this moment would otherwise stay in the queue as long as the store exists, and its
                    // sender would wait. Dropping the receiver does not wait for such sends; closing and draining it does.
                    waiting.close();
                    while waiting.blocking_recv().is_some() {}
                }
            })
            .map_err(OpenError::io("replay-writer"))?;
        let archiver = opened.archive.map(|(archive_store, name)| {
            let archiver = Archiver {
                archive_store,
                name,
                shared: Arc::clone(&shared),
                queue: queue.downgrade(),
            };
            archiver.start()
        });
        let archiver = archiver.transpose().map_err(OpenError::io("replay-archiver"))?;
        Ok(Self {
            archiver: Mutex::new(archiver),
            writer: Mutex::new(Some(writer)),
            ..Self::new(shared, queue, opened.damage)
        })
    }

    /// Returns a store without threads.
    fn new(shared: Arc<Shared>, queue: mpsc::Sender<Command>, damage: Damage) -> Self {
        Self {
            shared,
            queue,
            queued: Arc::new(Semaphore::new(MAX_QUEUED_KIB as usize)),
            writer: Mutex::new(None),
            archiver: Mutex::new(None),
            _claim: None,
            is_read_only: false,
            damage,
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns the Prometheus metrics of the store.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Returns a receiver of the state of the store.
    pub fn state(&self) -> watch::Receiver<StoreState> {
        self.shared.state.subscribe()
    }

    /// Returns a receiver of the number of trainable positions in the window.
    pub fn positions(&self) -> watch::Receiver<u64> {
        self.shared.positions.subscribe()
    }

    /// Returns the acknowledged games that were found to be lost when the store was opened.
    pub fn losses(&self) -> &[Loss] {
        &self.damage.losses
    }

    /// Returns all damage that was found when the store was opened.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// True if the store is open for reading only.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Queues a checked and packed game, and waits while the queue is full. `reply` is called when the verdict is durable, and is dropped
    /// without a call if the store fails first.
    ///
    /// # Errors
    /// [`StoreFailed`] if the store has stopped or is closing.
    pub async fn append(&self, checked: Checked, record: Vec<u8>, reply: Reply) -> Result<(), StoreFailed> {
        if record.len() > MAX_RECORD_BYTES {
            reply(Verdict::refused(format!(
                "rows: the packed game takes {} bytes, at most {MAX_RECORD_BYTES} are taken",
                record.len()
            )));
            return Ok(());
        }
        let kib = u32::try_from(record.len().div_ceil(1024)).unwrap_or(u32::MAX);
        let stopped = |_| self.stopped();
        let room = Arc::clone(&self.queued)
            .acquire_many_owned(kib.clamp(1, MAX_QUEUED_KIB))
            .await
            .map_err(|_| self.stopped())?;
        let pending = Pending {
            checked,
            record,
            reply,
            room,
        };
        self.queue.send(Command::Append(pending)).await.map_err(stopped)
    }

    /// Checks that a game is valid and that a learner can train on it.
    ///
    /// # Errors
    /// [`Refusal`] naming the first field that is wrong.
    pub fn check(&self, game: &Game) -> Result<Checked, Refusal> {
        let checked = self.shared.validator.check(game)?;
        self.metrics()
            .unreplayed
            .increment(u64::from(!checked.is_replayed));
        Ok(checked)
    }

    /// Checks, packs and stores one game, and waits until the verdict is durable.
    ///
    /// # Errors
    /// [`StoreFailed`] if the store has stopped.
    pub async fn put(&self, game: &Game) -> Result<Verdict, StoreFailed> {
        let checked = match self.check(game) {
            Ok(checked) => checked,
            Err(refusal) => return Ok(Verdict::refused(refusal)),
        };
        let record = record::encode(game.clone()).map_err(|error| StoreFailed {
            reason: format!("packing a game: {error}"),
        })?;
        let (tell, told) = oneshot::channel();
        let reply = Box::new(move |verdict| {
            // The caller may have been cancelled; the game is stored regardless.
            let _ = tell.send(verdict);
        });
        self.append(checked, record, reply).await?;
        told.await.map_err(|_| self.stopped())
    }

    /// Returns, for each id, whether the store would treat a game with this id as a duplicate: the game is in one of the volumes.
    pub fn are_known(&self, ids: &[Id]) -> Vec<bool> {
        let known = self.shared.known_ids.read();
        ids.iter().map(|id| known.contains_key(id)).collect()
    }

    /// Returns the counts of waiting batches and games.
    pub fn uses_bound(&self) -> &UsesBound {
        &self.shared.uses_bound
    }

    /// True if another game may be inserted: `min_uses` permits it, or a batch or a learner waits for positions.
    pub fn may_insert(&self) -> bool {
        self.shared.uses_bound.are_positions_awaited()
            || self.shared.settings.bounds.may_insert(&self.shared.ledger.now())
    }

    /// Deletes games of the window durably. Their ids stay known, so that the games are not stored again.
    ///
    /// # Errors
    /// [`DeleteError`]
    pub async fn delete(&self, sequences: Vec<u64>) -> Result<DeleteGamesReply, DeleteError> {
        let (tell, told) = oneshot::channel();
        let stopped = || DeleteError::Failed(self.stopped());
        self.queue
            .send(Command::Delete(sequences, tell))
            .await
            .map_err(|_| stopped())?;
        match told.await.map_err(|_| stopped())? {
            Ok(deleted) => Ok(deleted),
            Err(VolumeError::Full) => Err(DeleteError::Full),
            Err(error) => Err(DeleteError::Failed(StoreFailed {
                reason: error.to_string(),
            })),
        }
    }

    /// Returns the statistics of the store. Blocks on the disk.
    pub fn stats(&self) -> StatsReply {
        let ledger = self.shared.ledger.now();
        // A store that is opened for reading does not record losses in the ledger.
        let unrecorded = if self.is_read_only() {
            self.damage.losses.len()
        } else {
            0
        };
        let unreadable = (self.shared.unreadable.lock().len() + unrecorded) as u64;
        let disk_bytes = room::taken(&self.shared.settings.folder).unwrap_or_default();
        let window = self.shared.window.read();
        let (oldest_sequence, newest_sequence) = window.range().unwrap_or_default();
        StatsReply {
            games: window.games(),
            window_positions: window.positions(),
            games_inserted: ledger.games_inserted,
            positions_inserted: ledger.positions_inserted,
            positions_sampled: ledger.positions_sampled,
            duplicates: ledger.duplicates,
            damaged_games: ledger.damaged_games + unreadable,
            disk_bytes,
            stored_bytes: window.bytes(),
            oldest_sequence,
            newest_sequence,
            appends_held: self.shared.uses_bound.has_waiting_games(),
            samples_held: self.shared.uses_bound.has_waiting_batches(),
            held_out_positions: window.held_out(),
            unreadable_games: unreadable,
        }
    }

    /// Writes the queued games and the exact ledger, and closes the store. Blocks.
    ///
    /// # Errors
    /// [`StoreFailed`] if the store has failed or fails now.
    pub fn close(&self) -> Result<(), StoreFailed> {
        // Volumes that are not archived yet are archived when the store is opened again.
        if let Some(archiver) = self.archiver.lock().take() {
            archiver.end();
        }
        // Sending fails if the writer has already ended.
        let _ = self.queue.blocking_send(Command::Close);
        if let Some(writer) = self.writer.lock().take() {
            let _ = writer.join();
        }
        if let Some(index) = &self.shared.index {
            index.close();
        }
        self.shared.volumes.clear();
        match &*self.shared.state.borrow() {
            StoreState::Failed(failure) => Err(failure.clone()),
            StoreState::Running | StoreState::Closed => Ok(()),
        }
    }

    fn stopped(&self) -> StoreFailed {
        match &*self.shared.state.borrow() {
            StoreState::Failed(failure) => failure.clone(),
            StoreState::Running | StoreState::Closed if self.is_read_only() => StoreFailed {
                reason: "it is open for reading only".into(),
            },
            StoreState::Running | StoreState::Closed => StoreFailed {
                reason: "the store is being closed".into(),
            },
        }
    }
}
