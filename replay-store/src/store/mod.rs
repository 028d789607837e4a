//! [`Store`]: the store without its wire. Games go in, batches come out, from any number of threads.

pub mod append;
pub mod archiver;
pub mod identity;
pub mod open;
pub mod shared;
pub mod writer;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use proto::v1::{Batch, Game, GameSummary, StatsReply, StoredGame};
use service::contain::contain;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use crate::{
    error::{OpenError, StoreFailed},
    log::disk::{self, FileSystem, Probe, Room},
    log::files::{self, Files, Real},
    log::frame::Id,
    log::ledger::Ledger,
    log::recover::Loss,
    log::volume::{ReadError, VolumeError},
    metrics, record,
    record::decoded::Decoded,
    record::filter::Filter,
    record::validate::Checked,
    settings::{MAX_COMMIT_GAMES, MAX_QUEUED_KIB, MAX_RECORD_BYTES, Settings},
    store::append::{Pending, Reply, Verdict},
    store::archiver::{Archiver, Archiving},
    store::shared::{Shared, State},
    store::writer::{Command, Deleted, Writer},
    window::sampler::{self, Measured, Pick, Sampling, WantedTargets},
    window::uses_bound::Gate,
};

/// How often a batch is drawn anew because a game of it could not be read.
const REDRAWS: usize = 64;

/// An open store. [`Store::close`] waits until all is written; dropped without that it does the same behind one's back.
#[derive(Debug)]
pub struct Store {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Command>,
    queued: Arc<Semaphore>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Ends with this.
    archiver: Mutex<Option<Archiving>>,
    losses: Vec<Loss>,
}

/// Why there is no batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// More would be used than the bound allows: wait for games.
    #[error("positions have been used as often as replay.max_uses allows")]
    Held,
    /// The disk is full, so that nothing can be counted.
    #[error("the disk is full: samples cannot be counted")]
    Full,
    /// The window holds no positions.
    #[error("the window is empty")]
    Empty,
    /// Drawn games could not be read, again and again.
    #[error("drawn games cannot be read")]
    Unreadable,
    /// The store has stopped.
    #[error(transparent)]
    Failed(#[from] StoreFailed),
}

/// Why games are not deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeleteError {
    /// Not even that much room is left.
    #[error("the disk is full")]
    Full,
    /// The store has stopped.
    #[error(transparent)]
    Failed(#[from] StoreFailed),
}

/// Why there is no such game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GetError {
    /// No game with this id was ever stored, or it is forgotten.
    #[error("no game with this id is known")]
    Unknown,
    /// It was stored, and has left the window, or was deleted.
    #[error("the game with this id was retired from the window, or deleted")]
    Retired,
    /// It is stored and cannot be read.
    #[error("game {sequence} cannot be read: {reason}")]
    Damaged {
        /// Its sequence number.
        sequence: u64,
        /// What is wrong.
        reason: String,
    },
}

impl Store {
    /// Opens the store that `settings` describe, or makes it; reads every game once, and mends what can be mended.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        let probe = Box::new(FileSystem::new(&settings.folder));
        Self::open_with(settings, probe, Arc::new(Real))
    }

    /// [`Store::open`] with another way of measuring the disk, and on another disk.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_with(
        settings: Settings,
        probe: Box<dyn Probe>,
        files: Arc<dyn Files>,
    ) -> Result<Self, OpenError> {
        let room = Room::new(probe, settings.max_disk_bytes, settings.min_free_bytes);
        let opened = open::open(settings, files)?;
        let shared = Arc::new(opened.shared);
        let (queue, waiting) = mpsc::channel(MAX_COMMIT_GAMES);
        let archive_name = opened.identity.archive_name.clone();
        let writer = Writer::new(
            Arc::clone(&shared),
            opened.claim,
            opened.identity,
            room,
            opened.fill,
        );
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
                    // A game that was just being queued would lie there for as long as the store lives, and whoever sent it
                    // would wait as long: dropping the receiver does not wait for senders, this does.
                    waiting.close();
                    while waiting.blocking_recv().is_some() {}
                }
            })
            .map_err(OpenError::io("replay-writer"))?;
        let archiver = match (opened.vault, archive_name) {
            (Some(vault), Some(name)) => {
                let archiver = Archiver::new(vault, name, Arc::clone(&shared), queue.downgrade());
                Some(archiver.start().map_err(OpenError::io("replay-archiver"))?)
            }
            _ => None,
        };
        Ok(Self {
            archiver: Mutex::new(archiver),
            shared,
            queue,
            queued: Arc::new(Semaphore::new(MAX_QUEUED_KIB as usize)),
            writer: Mutex::new(Some(writer)),
            losses: opened.losses,
        })
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Whether it works; changes are seen by the receiver.
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// Trainable positions in the window; changes are seen by the receiver.
    pub fn positions(&self) -> watch::Receiver<u64> {
        self.shared.positions.subscribe()
    }

    /// Acknowledged games that were found lost when the store was opened.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Queues a checked and packed game; waits while the queue is full. `reply` is called once the game's
    /// fate is durable, and dropped if the store fails first.
    ///
    /// # Errors
    /// [`StoreFailed`] where the store has stopped or is closing.
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

    /// Checks, packs and stores one game, and waits until its fate is durable.
    ///
    /// # Errors
    /// [`StoreFailed`] where the store has stopped.
    pub async fn put(&self, game: &Game) -> Result<Verdict, StoreFailed> {
        let checked = match crate::record::validate::check(
            game,
            &self.shared.settings.game,
            self.shared.settings.options,
        ) {
            Ok(checked) => checked,
            Err(refusal) => return Ok(Verdict::refused(refusal)),
        };
        let record = record::encode(game.clone()).map_err(|error| StoreFailed {
            reason: format!("packing a game: {error}"),
        })?;
        let (tell, told) = oneshot::channel();
        let reply = Box::new(move |verdict| {
            // The sender may have gone; the game is stored all the same.
            let _ = tell.send(verdict);
        });
        self.append(checked, record, reply).await?;
        told.await.map_err(|_| self.stopped())
    }

    /// Draws batch `number` of `seed`; blocks on the disk where games are not in the cache. The
    /// positions are counted as sampled when this returns.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn batch(&self, seed: u64, number: u64, positions: usize) -> Result<Batch, SampleError> {
        self.draw(seed, number, positions, &WantedTargets::default())
    }

    /// Draws as [`Store::batch`] does, and adds the targets that are wanted.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn batch_with_targets(
        &self,
        seed: u64,
        number: u64,
        positions: usize,
        wanted: &WantedTargets,
    ) -> Result<Batch, SampleError> {
        self.draw(seed, number, positions, wanted)
    }

    /// Draws batch `number` of `seed` to measure a network by: from all of the window, each position as likely as any other, however
    /// training draws. It is not counted as sampled, and no bound holds it back. Blocks on the disk.
    ///
    /// # Errors
    /// [`SampleError::Empty`] where there is none, and as [`Store::batch`].
    pub fn measuring_batch(
        &self,
        of: Measured,
        seed: u64,
        number: u64,
        positions: usize,
        wanted: &WantedTargets,
    ) -> Result<Batch, SampleError> {
        for _ in 0..REDRAWS {
            if let State::Failed(failure) = &*self.shared.state.borrow() {
                return Err(failure.clone().into());
            }
            let picks = {
                let window = self.shared.window.read();
                sampler::draw_to_measure(&window, of, seed, number, positions).ok_or(SampleError::Empty)?
            };
            let Some(games) = self.decoded(&picks) else {
                continue;
            };
            let batch = sampler::assemble(&picks, &games, wanted).ok_or(SampleError::Unreadable)?;
            return Ok(self.labelled(batch, number));
        }
        Err(SampleError::Unreadable)
    }

    /// With what is said of every batch.
    fn labelled(&self, mut batch: Batch, number: u64) -> Batch {
        batch.number = number;
        batch.positions_inserted = self.shared.keeper.lock().now().positions_inserted;
        batch.window_positions = self.shared.window.read().positions();
        batch.game.clone_from(&self.shared.settings.game);
        batch.options = self.shared.settings.options;
        batch
    }

    fn draw(
        &self,
        seed: u64,
        number: u64,
        positions: usize,
        wanted: &WantedTargets,
    ) -> Result<Batch, SampleError> {
        for _ in 0..REDRAWS {
            if let State::Failed(failure) = &*self.shared.state.borrow() {
                return Err(failure.clone().into());
            }
            let ledger = self.shared.keeper.lock().now();
            let bounds = &self.shared.settings.bounds;
            let left = self.shared.window.read().positions();
            if !bounds.may_sample(&ledger, left, positions as u64) {
                return Err(SampleError::Held);
            }
            let sampling = &self.shared.settings.sampling;
            let newest = newest(sampling, &ledger);
            let within = !sampling.surprise.is_off();
            let mut picks = {
                let window = self.shared.window.read();
                sampler::draw(&window, newest, within, seed, number, positions).ok_or(SampleError::Empty)?
            };
            let Some(games) = self.decoded(&picks) else {
                continue;
            };
            for (pick, game) in picks.iter_mut().zip(&games) {
                if let Some(position) = game.choose(pick.within) {
                    pick.position = position;
                }
            }
            let Some(batch) = sampler::assemble(&picks, &games, wanted) else {
                return Err(SampleError::Unreadable);
            };
            {
                let mut keeper = self.shared.keeper.lock();
                // Others may have sampled meanwhile.
                let ledger = keeper.now();
                if !bounds.may_sample(&ledger, left, positions as u64) {
                    return Err(SampleError::Held);
                }
                let forgone = bounds.forgone(&ledger, left);
                if let Err(error) = keeper.sampled(positions as u64, forgone) {
                    if files::is_full(&error) {
                        return Err(SampleError::Full);
                    }
                    let failure = StoreFailed {
                        reason: format!("writing the ledger: {error}"),
                    };
                    self.shared.fail(failure.clone());
                    return Err(failure.into());
                }
            }
            self.shared.gate.open();
            return Ok(self.labelled(batch, number));
        }
        Err(SampleError::Unreadable)
    }

    /// The picks' games; `None` where one of them has left the window or cannot be read, so that another draw is due.
    fn decoded(&self, picks: &[Pick]) -> Option<Vec<Arc<Decoded>>> {
        let found = self.shared.cache.get(picks.iter().map(|pick| pick.sequence));
        let hits = found.iter().flatten().count();
        let mut read: HashMap<u64, Arc<Decoded>> = HashMap::new();
        let games = found
            .into_iter()
            .zip(picks)
            .map(|(game, pick)| match (game, read.get(&pick.sequence)) {
                (Some(game), _) => Some(game),
                (None, Some(game)) => Some(Arc::clone(game)),
                (None, None) => {
                    let game = Arc::new(self.decode(pick.sequence)?);
                    self.shared.cache.insert(pick.sequence, &game);
                    read.insert(pick.sequence, Arc::clone(&game));
                    Some(game)
                }
            })
            .collect::<Option<Vec<_>>>()?;
        metrics::sampled(hits, picks.len() - hits, self.shared.cache.bytes());
        Some(games)
    }

    fn decode(&self, sequence: u64) -> Option<Decoded> {
        match self.read(sequence) {
            Ok(game) => match Decoded::new(&game, &self.shared.settings.sampling.surprise) {
                Ok(decoded) => Some(decoded),
                Err(error) => {
                    self.shared.lose(sequence, &error.to_string());
                    None
                }
            },
            Err(GetError::Damaged { reason, .. }) => {
                self.shared.lose(sequence, &reason);
                None
            }
            Err(GetError::Unknown | GetError::Retired) => None,
        }
    }

    fn read(&self, sequence: u64) -> Result<Game, GetError> {
        self.record(sequence)
            .and_then(|record| decoded_or_damaged(sequence, record::decode(&record)))
    }

    fn record(&self, sequence: u64) -> Result<Vec<u8>, GetError> {
        self.shared.shelf.read(sequence).map_err(|error| {
            // A volume may go between a look at the window and this.
            if error == ReadError::Missing && !self.shared.window.read().holds(sequence) {
                GetError::Retired
            } else {
                GetError::Damaged {
                    sequence,
                    reason: error.to_string(),
                }
            }
        })
    }

    /// The game with this id, equal to the message that was stored. Blocks on the disk.
    ///
    /// # Errors
    /// [`GetError`].
    pub fn get(&self, id: &Id) -> Result<Game, GetError> {
        let sequence = self.shared.known.read().sequence(id).ok_or(GetError::Unknown)?;
        if !self.shared.window.read().holds(sequence) {
            return Err(GetError::Retired);
        }
        self.read(sequence)
    }

    /// Which of these games it has, or had: those that it would take for duplicates.
    pub fn known(&self, ids: &[Id]) -> Vec<bool> {
        let known = self.shared.known.read();
        ids.iter().map(|id| known.sequence(id).is_some()).collect()
    }

    /// Who waits for the other side.
    pub fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// Whether more games may come in: batches are not too far behind, or one waits for games.
    pub fn may_insert(&self) -> bool {
        self.shared.gate.lets_in()
            || self
                .shared
                .settings
                .bounds
                .may_insert(&self.shared.keeper.lock().now())
    }

    /// The window's games that fit a filter, which must not be empty: their sequence numbers and positions with visit
    /// counts.
    /// Blocks on the disk.
    pub fn find(&self, filter: &Filter) -> Vec<(u64, u32)> {
        let slots: Vec<(u64, u32)> = {
            let window = self.shared.window.read();
            let all = window
                .from(0)
                .map(|slot| (slot.sequence, slot.trainable + slot.held_out));
            match filter.ids() {
                [] => all.collect(),
                ids => {
                    let known = self.shared.known.read();
                    let wanted: HashSet<u64> = ids
                        .iter()
                        .filter_map(|id| known.sequence(&id.as_ref().try_into().ok()?))
                        .collect();
                    all.filter(|(sequence, _)| wanted.contains(sequence)).collect()
                }
            }
        };
        slots
            .into_iter()
            .filter(|&(sequence, _)| {
                let summary = self
                    .record(sequence)
                    .ok()
                    .and_then(|record| record::summary(&record).ok());
                summary.is_some_and(|summary| filter.fits(&summary.id, &summary.game))
            })
            .collect()
    }

    /// Deletes games of the window, durably. They stay known, so that they are not taken for new ones.
    ///
    /// # Errors
    /// [`DeleteError`]
    pub async fn delete(&self, sequences: Vec<u64>) -> Result<Deleted, DeleteError> {
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

    /// Games of the window in short: those after sequence number `after`, oldest first; or, newest first, those
    /// before it (0: from the newest). Games that cannot be read or do not fit are left out. Blocks on the disk.
    pub fn list(&self, after: u64, limit: usize, newest_first: bool, filter: &Filter) -> Vec<GameSummary> {
        // Filtered here, every game may have to be looked at.
        let most = if filter.is_empty() { limit } else { usize::MAX };
        let sequences: Vec<u64> = {
            let window = self.shared.window.read();
            let slots = window.from(if newest_first { 0 } else { after.saturating_add(1) });
            if newest_first {
                slots
                    .rev()
                    .map(|slot| slot.sequence)
                    .filter(|&sequence| after == 0 || sequence < after)
                    .take(most)
                    .collect()
            } else {
                slots.map(|slot| slot.sequence).take(most).collect()
            }
        };
        sequences
            .into_iter()
            .filter_map(|sequence| {
                let record = self.record(sequence).ok()?;
                let found = record::summary(&record).ok()?;
                filter
                    .fits(&found.id, &found.game)
                    .then(|| summary(sequence, found))
            })
            .take(limit)
            .collect()
    }

    /// The next games from sequence number `from` up to `to`, at most `limit`, oldest first, and where to go on; `None`
    /// at the end. Games that cannot be read are reported and left out, and so are those that do not fit. Blocks on the disk.
    pub fn export(
        &self,
        from: u64,
        to: u64,
        limit: usize,
        filter: &Filter,
    ) -> Option<(Vec<StoredGame>, u64)> {
        let sequences: Vec<u64> = self
            .shared
            .window
            .read()
            .from(from)
            .map(|slot| slot.sequence)
            .take_while(|&sequence| sequence <= to)
            .take(limit)
            .collect();
        let next = sequences.last()? + 1;
        let games = sequences
            .into_iter()
            .filter_map(|sequence| match self.read(sequence) {
                Ok(game) if !filter.fits(&game.id, &game) => None,
                Ok(game) => Some(StoredGame {
                    sequence,
                    game: Some(game),
                }),
                Err(error) => {
                    if let GetError::Damaged { reason, .. } = error {
                        self.shared.lose(sequence, &reason);
                    }
                    None
                }
            })
            .collect();
        Some((games, next))
    }

    /// The store in numbers. Blocks on the disk.
    pub fn stats(&self) -> StatsReply {
        let ledger = self.shared.keeper.lock().now();
        let unreadable = self.shared.unreadable.lock().len() as u64;
        let disk_bytes = disk::taken(&self.shared.settings.folder).unwrap_or_default();
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
            sampled_window_positions: newest(&self.shared.settings.sampling, &ledger).min(window.positions()),
            appends_held: self.shared.gate.games_wait(),
            samples_held: self.shared.gate.batches_wait(),
            held_out_positions: window.held_out(),
        }
    }

    /// Finishes what waits, makes the ledger exact, and closes the database. Blocks.
    ///
    /// # Errors
    /// [`StoreFailed`] where the store had failed, or fails at this.
    pub fn close(&self) -> Result<(), StoreFailed> {
        // What it has not written yet it writes when the store is opened again.
        if let Some(archiver) = self.archiver.lock().take() {
            archiver.end();
        }
        // The writer is gone already where this cannot be sent.
        let _ = self.queue.blocking_send(Command::Close);
        if let Some(writer) = self.writer.lock().take() {
            let _ = writer.join();
        }
        match &*self.shared.state.borrow() {
            State::Failed(failure) => Err(failure.clone()),
            State::Running | State::Closed => Ok(()),
        }
    }

    fn stopped(&self) -> StoreFailed {
        match &*self.shared.state.borrow() {
            State::Failed(failure) => failure.clone(),
            State::Running | State::Closed => StoreFailed {
                reason: "it is being closed".into(),
            },
        }
    }
}

/// How many of the newest positions are drawn from.
fn newest(sampling: &Sampling, ledger: &Ledger) -> u64 {
    sampling
        .window
        .map_or(u64::MAX, |law| law.positions(ledger.positions_inserted))
}

fn decoded_or_damaged<T>(sequence: u64, decoded: Result<T, record::DecodeError>) -> Result<T, GetError> {
    decoded.map_err(|error| GetError::Damaged {
        sequence,
        reason: error.to_string(),
    })
}

fn summary(sequence: u64, summary: record::Summary) -> GameSummary {
    GameSummary {
        id: summary.id.to_vec().into(),
        sequence,
        game: summary.game.game,
        positions: summary.positions,
        result: summary.game.result,
        ending: summary.game.ending,
        model_versions: summary.game.model_versions,
        finished_at_ms: summary.game.finished_at_ms,
        actor: summary.game.actor,
        build: summary.game.build,
    }
}
