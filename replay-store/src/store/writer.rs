//! The writer thread: takes queued games of all streams and commits them to the log in groups.
//!
//! A game is acknowledged and enters the window after its group is flushed. If a write or a flush fails, the state of the log is unknown,
//! even if a second `fsync` succeeds. The thread then stops permanently: queued games are not acknowledged, the store reports the failure, and
//! the process ends with an error. The next opening recovers what was written. A full disk is not a failure: the incomplete write is
//! undone, the games are refused temporarily, and the store continues. A lack of file descriptors is not a failure either: games are
//! refused temporarily while a new volume is needed and cannot be started.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use proto::v1::DeleteGamesReply;
use tokio::sync::mpsc;

use crate::{
    error::{StoreFailed, VolumeError},
    log::{
        files,
        frame::Id,
        ledger::{Ledger, LiveLedger},
        recover,
        room::Room,
        volume::{Commit, NewGame, Row, Volume},
    },
    settings::{MAX_COMMIT_BYTES, MAX_COMMIT_GAMES, MAX_VOLUME_BYTES},
    store::{
        append::{Command, Pending, Verdict},
        identity::Claim,
        shared::{Fill, Shared, volume_folder, volumes_folder},
    },
    window::held_out::PositionCounts,
};

/// The writer of a store.
pub struct Writer {
    shared: Arc<Shared>,
    room: Room,
    fill: Fill,
    /// First sequence number of a volume that must be started before games can be written.
    unstarted: Option<u64>,
    /// True if folders of retired volumes remain to be removed.
    has_unremoved: bool,
    // Locks the folder while the writer exists.
    _claim: Claim,
}

impl Writer {
    /// Returns the writer of an opened store.
    pub fn new(shared: Arc<Shared>, claim: Claim, room: Room, fill: Fill) -> Self {
        Self {
            shared,
            room,
            fill,
            unstarted: None,
            has_unremoved: false,
            _claim: claim,
        }
    }

    /// Writes until [`Command::Close`] arrives.
    ///
    /// # Errors
    /// [`StoreFailed`] after the first failure other than a full disk or a lack of file descriptors.
    pub fn run(mut self, queue: &mut mpsc::Receiver<Command>) -> Result<(), StoreFailed> {
        self.remove_retired()?;
        let mut waiting = Vec::new();
        let mut is_closing = false;
        while !is_closing {
            let Some(command) = queue.blocking_recv() else {
                break;
            };
            let mut control = take_game(command, &mut waiting);
            let mut bytes: usize = waiting.iter().map(|pending| pending.record.len()).sum();
            while control.is_none() && bytes < MAX_COMMIT_BYTES && waiting.len() < MAX_COMMIT_GAMES {
                let Ok(command) = queue.try_recv() else {
                    break;
                };
                control = take_game(command, &mut waiting);
                bytes += waiting.last().map_or(0, |pending| pending.record.len());
            }
            self.commit(std::mem::take(&mut waiting))?;
            match control {
                Some(Command::Close) => is_closing = true,
                Some(Command::Archived) => self.remove_retired()?,
                Some(Command::Delete(sequences, reply)) => {
                    let deleted = self.delete(sequences);
                    let failure = deleted
                        .as_ref()
                        .err()
                        .filter(|error| **error != VolumeError::Full)
                        .cloned();
                    // Sending fails if the caller has been cancelled.
                    let _ = reply.send(deleted);
                    if let Some(error) = failure {
                        return Err(failed("deleting games")(error));
                    }
                }
                Some(Command::Append(_)) | None => {}
            }
        }
        queue.close();
        self.shared.write_index();
        self.shared
            .ledger
            .change(LiveLedger::close)
            .map_err(failed("writing the ledger"))
    }

    /// Commits one group of games and acknowledges them.
    fn commit(&mut self, waiting: Vec<Pending>) -> Result<(), StoreFailed> {
        if let Some(next) = self.unstarted.filter(|_| !waiting.is_empty()) {
            self.start_volume(next)?;
            if self.unstarted.is_some() {
                for game in waiting {
                    self.shared.metrics.refused("descriptors");
                    (game.reply)(Verdict::refused_for_now(VolumeError::NoDescriptor));
                }
                return Ok(());
            }
        }
        let (games, repeated) = self.admit(waiting);
        if games.is_empty() {
            return self.save_duplicates();
        }
        let before = self.shared.ledger.change(|ledger| ledger.durable());
        let mut ledger = before;
        ledger.next_sequence += games.len() as u64;
        ledger.games_inserted += games.len() as u64;
        let held_out = self.shared.settings.held_out;
        let uses: Vec<PositionCounts> = games
            .iter()
            .map(|game| held_out.split(&game.checked.id, game.checked.trainable))
            .collect();
        ledger.positions_inserted += uses.iter().map(|uses| u64::from(uses.trainable)).sum::<u64>();
        let mut senders = Vec::with_capacity(games.len());
        let mut entries = Vec::with_capacity(games.len());
        for (sequence, game) in (before.next_sequence..).zip(games) {
            entries.push(NewGame {
                sequence,
                id: game.checked.id,
                record: game.record,
            });
            senders.push((game.checked, game.reply, game.room));
        }
        let volume = self.shared.volumes.newest().ok_or_else(|| StoreFailed {
            reason: "there is no volume to write".into(),
        })?;
        if !self.make_durable(&volume, &entries, &ledger)? {
            self.shared.metrics.refused("full");
            self.shared.warn_of_room(&VolumeError::Full);
            for (_, reply, _room) in senders {
                reply(Verdict::refused_for_now(VolumeError::Full));
            }
            for game in repeated {
                (game.reply)(Verdict::refused_for_now(VolumeError::Full));
            }
            self.room.changed();
            return self.remove_retired();
        }

        let rows = entries.iter().zip(&senders).filter_map(|(entry, (checked, ..))| {
            Some(Row {
                sequence: entry.sequence,
                id: entry.id,
                extent: volume.extent(entry.sequence)?,
                trainable: checked.trainable,
                bytes: entry.record.len() as u32,
                listed: checked.listed.clone(),
            })
        });
        let rows: Vec<Row> = rows.collect();
        self.publish(&rows, &uses);
        for (_, reply, _room) in senders {
            reply(Verdict::Stored);
        }
        if let Some(index) = &self.shared.index {
            index.record(&volume, &rows);
        }
        for game in repeated {
            self.duplicate(game);
        }
        self.save_duplicates()?;
        self.seal_if_full(ledger.next_sequence)?;
        self.remove_retired()
    }

    /// Commits games and the ledger. Returns false if the disk is full; nothing has changed then.
    fn make_durable(
        &self,
        volume: &Volume,
        entries: &[NewGame],
        ledger: &Ledger,
    ) -> Result<bool, StoreFailed> {
        let began = Instant::now();
        let commit = Commit {
            entries,
            lost: &[],
            deleted: &[],
            ledger,
        };
        match volume.commit(commit) {
            Ok(()) => {}
            Err(VolumeError::Full) => return Ok(false),
            Err(error) => return Err(failed("writing games")(error)),
        }
        match self.shared.ledger.change(|live| live.inserted(ledger)) {
            // The volume contains the ledger too.
            Err(error) if files::is_full(&error) => {}
            written => written.map_err(failed("writing the ledger"))?,
        }
        self.shared.metrics.flush_seconds.record(began.elapsed());
        Ok(true)
    }

    /// Answers the games that are duplicates or for which there is no space. Returns the others, and those that occur a second time.
    fn admit(&mut self, waiting: Vec<Pending>) -> (Vec<Pending>, Vec<Pending>) {
        let (mut games, mut repeated) = (Vec::new(), Vec::new());
        let mut ids: HashSet<Id> = HashSet::new();
        for game in waiting {
            if self.shared.known_ids.read().contains_key(&game.id()) {
                self.duplicate(game);
            } else if ids.contains(&game.id()) {
                repeated.push(game);
            } else if let Err(no_room) = self.room.check(game.record.len() as u64) {
                self.shared.metrics.refused("disk");
                let reason = match self.shared.unarchived() {
                    0 => no_room,
                    volumes => format!(
                        "{no_room}; {volumes} sealed volumes cannot be removed before they are in {}",
                        self.shared.settings.archive
                    ),
                };
                self.shared.warn_of_room(&reason);
                (game.reply)(Verdict::refused_for_now(reason));
            } else {
                ids.insert(game.id());
                games.push(game);
            }
        }
        if let Some(space) = self.room.measured() {
            let metrics = &self.shared.metrics;
            metrics.disk_bytes.set(space.used as f64);
            metrics.disk_limit_bytes.set(self.room.allowed(space) as f64);
            metrics.disk_free_bytes.set(space.free as f64);
        }
        (games, repeated)
    }

    fn duplicate(&self, game: Pending) {
        self.shared.ledger.change(LiveLedger::duplicate);
        self.shared.metrics.duplicates.increment(1);
        (game.reply)(Verdict::Duplicate);
    }

    fn save_duplicates(&self) -> Result<(), StoreFailed> {
        match self.shared.ledger.change(LiveLedger::save) {
            Err(error) if files::is_full(&error) => Ok(()),
            saved => saved.map_err(failed("writing the ledger")),
        }
    }

    /// Adds committed games to the window and to the catalog, and removes the games that leave the window.
    fn publish(&mut self, rows: &[Row], uses: &[PositionCounts]) {
        let ids = rows.iter().map(|row| (row.id, row.sequence));
        self.shared.known_ids.write().extend(ids);
        let mut retired = Vec::new();
        {
            let mut window = self.shared.window.write();
            for (row, &uses) in rows.iter().zip(uses) {
                retired.extend(window.push(row.sequence, uses, row.bytes));
                self.fill.positions += u64::from(uses.trainable.max(1));
                self.fill.bytes += u64::from(row.bytes);
            }
            self.shared.metrics.window_changed(&window);
        }
        for slot in &retired {
            self.shared.cache.remove(slot.sequence);
        }
        let trainable = uses.iter().map(|uses| u64::from(uses.trainable));
        let metrics = &self.shared.metrics;
        metrics.games_inserted.increment(rows.len() as u64);
        metrics.positions_inserted.increment(trainable.sum());
        {
            let mut catalog = self.shared.catalog.write();
            for row in rows {
                catalog.push(row.sequence, row.listed.clone());
            }
        }
        self.shared.announce();
    }

    /// Writes the deletion of games to their volumes, and removes the games from the window.
    fn delete(&mut self, sequences: Vec<u64>) -> Result<DeleteGamesReply, VolumeError> {
        let ledger = self.shared.ledger.change(|ledger| ledger.durable());
        let mut by_volume: BTreeMap<u64, (Arc<Volume>, Vec<u64>)> = BTreeMap::new();
        for sequence in sequences {
            if let Some(volume) = self.shared.volumes.holding(sequence) {
                let (_, own) = by_volume
                    .entry(volume.first())
                    .or_insert_with(|| (volume, Vec::new()));
                own.push(sequence);
            }
        }
        let mut deleted = DeleteGamesReply::default();
        for (volume, own) in by_volume.into_values() {
            volume.commit(Commit {
                entries: &[],
                lost: &[],
                deleted: &own,
                ledger: &ledger,
            })?;
            if let Some(index) = &self.shared.index {
                index.record(&volume, &[]);
            }
            let gone = self.shared.window.write().delete(&own.into_iter().collect());
            for slot in &gone {
                self.shared.cache.remove(slot.sequence);
            }
            deleted.games += gone.len() as u64;
            deleted.positions += gone
                .iter()
                .map(|slot| u64::from(slot.trainable + slot.held_out))
                .sum::<u64>();
        }
        self.shared.metrics.window_changed(&self.shared.window.read());
        self.shared.announce();
        Ok(deleted)
    }

    fn seal_if_full(&mut self, next: u64) -> Result<(), StoreFailed> {
        let is_full = self.fill.positions >= self.shared.settings.volume_positions()
            || self.fill.bytes >= MAX_VOLUME_BYTES;
        if is_full { self.start_volume(next) } else { Ok(()) }
    }

    /// Starts the volume that begins with sequence number `next`.
    fn start_volume(&mut self, next: u64) -> Result<(), StoreFailed> {
        let folder = volume_folder(&self.shared.settings.folder, next);
        let files = &self.shared.files;
        match Volume::open(files.as_ref(), &folder, next) {
            Ok(volume) => {
                self.shared.write_index();
                if let Some(index) = &self.shared.index {
                    index.begin(&volume, 0, &[]);
                }
                self.shared.volumes.push(volume);
                self.shared.sealed.notify_one();
                self.fill = Fill::default();
                self.unstarted = None;
                Ok(())
            }
            // The folder may exist already, and its name marks the end of the present volume, which must not grow then.
            Err(error @ VolumeError::NoDescriptor) => {
                self.unstarted = Some(next);
                self.shared.warn_of_room(&error);
                Ok(())
            }
            Err(VolumeError::Full) => {
                self.unstarted = None;
                // The present volume continues to grow. The folder of the new one must be removed, because its name marks the end of
                // the present volume.
                let parent = folder.parent().unwrap_or(&folder);
                if files.exists(&folder) {
                    files
                        .remove_folder(&folder)
                        .map_err(failed("starting a volume"))?;
                }
                files.sync_folder(parent).map_err(failed("starting a volume"))
            }
            Err(error) => Err(failed("starting a volume")(error)),
        }
    }

    /// Removes volumes whose games are all retired and, if there is an archive, archived.
    fn remove_retired(&mut self) -> Result<(), StoreFailed> {
        if self.has_unremoved {
            let folder = volumes_folder(&self.shared.settings.folder);
            self.has_unremoved = is_postponed(recover::finish_removals(self.shared.files.as_ref(), &folder))?;
        }
        for (oldest, next) in self.shared.volumes.sealed() {
            let range = self.shared.window.read().range();
            let is_needed = range.is_none_or(|(first, _)| first < next);
            if is_needed || next > self.shared.archived_to.load(Ordering::SeqCst) {
                break;
            }
            self.shared.volumes.remove_oldest();
            self.shared
                .known_ids
                .write()
                .retain(|_, sequence| *sequence >= next);
            self.shared.catalog.write().remove_below(next);
            if let Some(index) = &self.shared.index {
                index.forget(oldest.first());
            }
            self.shared.report_index();
            let files = self.shared.files.as_ref();
            self.has_unremoved |= is_postponed(recover::remove(files, oldest.folder()))?;
            self.room.changed();
        }
        Ok(())
    }
}

/// Adds a game to `waiting`, or returns the command if it is not a game. Such a command is executed after the games queued before it are
/// committed.
fn take_game(command: Command, waiting: &mut Vec<Pending>) -> Option<Command> {
    match command {
        Command::Append(pending) => {
            waiting.push(pending);
            None
        }
        other => Some(other),
    }
}

/// Returns true if the removal of a retired volume must be tried again, because no file descriptor is left.
fn is_postponed(removed: io::Result<()>) -> Result<bool, StoreFailed> {
    match removed {
        Err(error) if files::lacks_descriptor(&error) => Ok(true),
        removed => removed
            .map(|()| false)
            .map_err(failed("removing a retired volume")),
    }
}

fn failed<E: std::fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> StoreFailed {
    move |error| StoreFailed {
        reason: format!("{doing}: {error}"),
    }
}
