//! The one thread that writes: it takes the games that wait, from whatever streams, and makes them durable together.
//!
//! A game is acknowledged after its batch's flush, and enters the window then. After a failed write or
//! flush nothing may be believed of the database (a second `fsync` may well succeed and prove nothing), so the
//! thread stops for good: what waits is never acknowledged, the store reports itself failed, and the
//! process ends with an error. Opening it again finds out what is there. A full disk is another matter: what could not be
//! written is undone, the games are refused for now, and everything else goes on.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use tokio::sync::{mpsc, oneshot};

use crate::{
    error::{StoreFailed, VolumeError},
    log::{
        files,
        frame::Id,
        ledger::Ledger,
        recover,
        room::Room,
        volume::{Commit, Entry, Volume},
    },
    record,
    settings::{MAX_COMMIT_BYTES, MAX_COMMIT_GAMES, MAX_VOLUME_BYTES},
    store::{
        append::{Pending, Verdict},
        archived,
        command::{Command, Deleted},
        identity::{Claim, Identity},
        shared::{Fill, Shared, volume_folder},
    },
    window::held_out::Uses,
};

/// The writer.
pub struct Writer {
    shared: Arc<Shared>,
    identity: Identity,
    room: Room,
    fill: Fill,
    // The folder is claimed for as long as the writer works.
    _claim: Claim,
}

impl Writer {
    /// Takes over an opened store.
    pub fn new(shared: Arc<Shared>, claim: Claim, identity: Identity, room: Room, fill: Fill) -> Self {
        Self {
            shared,
            identity,
            room,
            fill,
            _claim: claim,
        }
    }

    /// Works until it is told to close.
    ///
    /// # Errors
    /// [`StoreFailed`] after the first thing that must not fail.
    pub fn run(mut self, queue: &mut mpsc::Receiver<Command>) -> Result<(), StoreFailed> {
        self.remove_retired()?;
        let mut waiting = Vec::new();
        let mut is_closing = false;
        while !is_closing {
            let Some(command) = queue.blocking_recv() else {
                break;
            };
            let mut other = take(command, &mut waiting);
            let mut bytes: usize = waiting.iter().map(|pending| pending.record.len()).sum();
            while other.is_none() && bytes < MAX_COMMIT_BYTES && waiting.len() < MAX_COMMIT_GAMES {
                let Ok(command) = queue.try_recv() else {
                    break;
                };
                other = take(command, &mut waiting);
                bytes += waiting.last().map_or(0, |pending| pending.record.len());
            }
            self.commit(std::mem::take(&mut waiting))?;
            match other {
                Some(Other::Close) => is_closing = true,
                Some(Other::Archived) => self.remove_retired()?,
                Some(Other::Delete(sequences, told)) => {
                    let deleted = self.delete(sequences);
                    let failure = deleted
                        .as_ref()
                        .err()
                        .filter(|error| **error != VolumeError::Full)
                        .cloned();
                    // Whoever asked may have gone.
                    let _ = told.send(deleted);
                    if let Some(error) = failure {
                        return Err(failed("deleting games")(error));
                    }
                }
                None => {}
            }
        }
        queue.close();
        self.shared
            .keeper
            .lock()
            .close()
            .map_err(failed("writing the ledger"))
    }

    /// Makes one group of games durable and tells their senders.
    fn commit(&mut self, waiting: Vec<Pending>) -> Result<(), StoreFailed> {
        let Admitted { games, twice } = self.admit(waiting)?;
        if games.is_empty() {
            return self.save_duplicates();
        }
        let before = self.shared.keeper.lock().durable();
        let mut ledger = before;
        ledger.next_sequence += games.len() as u64;
        ledger.games_inserted += games.len() as u64;
        let held_out = self.shared.settings.held_out;
        let uses: Vec<Uses> = games
            .iter()
            .map(|game| held_out.uses(&game.checked.id, game.checked.trainable))
            .collect();
        ledger.positions_inserted += uses.iter().map(|uses| u64::from(uses.trainable)).sum::<u64>();
        let mut senders = Vec::with_capacity(games.len());
        let mut entries = Vec::with_capacity(games.len());
        for (sequence, game) in (before.next_sequence..).zip(games) {
            entries.push(Entry {
                sequence,
                id: game.checked.id,
                record: game.record,
            });
            senders.push((game.checked, game.reply, game.room));
        }
        if !self.make_durable(&entries, &ledger)? {
            self.shared.metrics.refused("full");
            self.shared.warn_of_room(&VolumeError::Full);
            for (_, reply, _room) in senders {
                reply(refused_for_now(&VolumeError::Full));
            }
            for game in twice {
                (game.reply)(refused_for_now(&VolumeError::Full));
            }
            self.room.changed();
            return self.remove_retired();
        }

        self.publish(&entries, &uses);
        for (_, reply, _room) in senders {
            reply(Verdict::Stored);
        }
        for game in twice {
            self.duplicate(game);
        }
        self.save_duplicates()?;
        self.seal_if_full(ledger.next_sequence)?;
        self.remove_retired()
    }

    /// False where the disk is full, and everything is as it was.
    fn make_durable(&self, entries: &[Entry], ledger: &Ledger) -> Result<bool, StoreFailed> {
        let began = Instant::now();
        let volume = self.shared.volumes.youngest().ok_or_else(|| StoreFailed {
            reason: "there is no volume to write to".into(),
        })?;
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
        match self.shared.keeper.lock().inserted(ledger) {
            // The volume has it too.
            Err(error) if files::is_full(&error) => {}
            written => written.map_err(failed("writing the ledger"))?,
        }
        self.shared.metrics.committed(entries.len(), began.elapsed());
        Ok(true)
    }

    /// Sorts out what cannot be stored, and answers it.
    fn admit(&mut self, waiting: Vec<Pending>) -> Result<Admitted, StoreFailed> {
        let mut admitted = Admitted::default();
        let mut ids: HashSet<Id> = HashSet::new();
        for game in waiting {
            if self.shared.known.read().sequence(&game.id()).is_some() {
                self.duplicate(game);
            } else if ids.contains(&game.id()) {
                admitted.twice.push(game);
            } else if let Some(verdict) = self.other_rows(&game)? {
                self.shared.metrics.refused("row_length");
                (game.reply)(verdict);
            } else if let Err(no_room) = self.room.check(game.record.len() as u64) {
                self.shared.metrics.refused("disk");
                let reason = match self.shared.unarchived() {
                    0 => no_room.to_string(),
                    volumes => format!(
                        "{no_room}; {volumes} sealed volumes cannot be removed before they are in {}",
                        self.shared.settings.archive
                    ),
                };
                self.shared.warn_of_room(&reason);
                (game.reply)(refused_for_now(&reason));
            } else {
                ids.insert(game.id());
                admitted.games.push(game);
            }
        }
        if let Some(space) = self.room.measured() {
            self.shared.metrics.disk_measured(space.used);
            self.shared.metrics.disk_limit_changed(self.room.allowed(space));
        }
        Ok(admitted)
    }

    /// The first game fixes the rows' length; says what is wrong with a game whose rows have another.
    fn other_rows(&mut self, game: &Pending) -> Result<Option<Verdict>, StoreFailed> {
        let length = game.checked.row_length.unwrap_or(0);
        match self.identity.row_length {
            Some(known) if known == length => Ok(None),
            Some(known) => {
                let say = |length| match length {
                    0 => "varying length".to_owned(),
                    length => format!("{length} values"),
                };
                Ok(Some(Verdict::refused(format!(
                    "rows: of {}, this store's are of {}",
                    say(length),
                    say(known)
                ))))
            }
            None => {
                let identity = Identity {
                    row_length: Some(length),
                    ..self.identity.clone()
                };
                match identity.save(self.shared.files.as_ref(), &self.shared.settings.folder) {
                    Ok(()) => {
                        self.identity = identity;
                        Ok(None)
                    }
                    Err(error) if files::is_full(&error) => Ok(Some(refused_for_now(&VolumeError::Full))),
                    Err(error) => Err(failed("writing store.json")(error)),
                }
            }
        }
    }

    fn duplicate(&self, game: Pending) {
        self.shared.keeper.lock().duplicate();
        self.shared.metrics.duplicate();
        (game.reply)(Verdict::Duplicate);
    }

    fn save_duplicates(&self) -> Result<(), StoreFailed> {
        match self.shared.keeper.lock().save() {
            Err(error) if files::is_full(&error) => Ok(()),
            saved => saved.map_err(failed("writing the ledger")),
        }
    }

    /// Lets samplers see the games, and retires what they push out.
    fn publish(&mut self, entries: &[Entry], uses: &[Uses]) {
        {
            let mut known = self.shared.known.write();
            for entry in entries {
                known.insert(entry.id, entry.sequence);
            }
        }
        let mut retired = Vec::new();
        {
            let mut window = self.shared.window.write();
            for (entry, &uses) in entries.iter().zip(uses) {
                let bytes = entry.record.len() as u32;
                retired.extend(window.push(entry.sequence, uses, bytes));
                self.fill.positions += u64::from(uses.trainable.max(1));
                self.fill.bytes += u64::from(bytes);
            }
            self.shared.report_window(&window);
        }
        for slot in &retired {
            self.shared.cache.remove(slot.sequence);
        }
        self.shared.metrics.inserted(
            entries.len(),
            uses.iter().map(|uses| u64::from(uses.trainable)).sum(),
        );
        self.shared.announce();
        self.shared.notify_index();
    }

    /// Deletes games, each in its own volume.
    fn delete(&mut self, sequences: Vec<u64>) -> Result<Deleted, VolumeError> {
        let ledger = self.shared.keeper.lock().durable();
        let mut by_volume: BTreeMap<u64, (Arc<Volume>, Vec<u64>)> = BTreeMap::new();
        for sequence in sequences {
            if let Some(volume) = self.shared.volumes.holding(sequence) {
                let (_, own) = by_volume
                    .entry(volume.first())
                    .or_insert_with(|| (volume, Vec::new()));
                own.push(sequence);
            }
        }
        let mut deleted = Deleted::default();
        for (volume, own) in by_volume.into_values() {
            volume.commit(Commit {
                entries: &[],
                lost: &[],
                deleted: &own,
                ledger: &ledger,
            })?;
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
        self.shared.metrics.deleted(deleted.games);
        self.shared.report_window(&self.shared.window.read());
        self.shared.announce();
        self.shared.notify_index();
        Ok(deleted)
    }

    fn seal_if_full(&mut self, next: u64) -> Result<(), StoreFailed> {
        let is_full = self.fill.positions >= self.shared.settings.volume_positions()
            || self.fill.bytes >= MAX_VOLUME_BYTES;
        if !is_full {
            return Ok(());
        }
        let folder = volume_folder(&self.shared.settings.folder, next);
        let files = &self.shared.files;
        match Volume::open(files, &folder, next, None) {
            Ok((volume, _)) => {
                self.shared.volumes.push(volume);
                self.shared.sealed.notify_one();
                self.fill = Fill::default();
                Ok(())
            }
            Err(VolumeError::Full) => {
                // The present volume goes on growing. Nothing may be left of the other one: its name says that the
                // present one ends before it.
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

    /// Removes volumes whose games are all retired, and in the archive where there is one; their ids are kept.
    fn remove_retired(&mut self) -> Result<(), StoreFailed> {
        while let Some((oldest, next)) = self.shared.volumes.oldest() {
            let is_needed = self
                .shared
                .window
                .read()
                .range()
                .is_none_or(|(first, _)| first < next);
            if is_needed || next > self.shared.archived_to.load(Ordering::SeqCst) {
                break;
            }
            let ids: Vec<(u64, Id)> = (oldest.first()..next)
                .filter_map(|sequence| {
                    let id = oldest.name(sequence).or_else(|| {
                        let record = oldest.read(sequence).ok()?;
                        Some(record::summary(&record).ok()?.id)
                    })?;
                    Some((sequence, id))
                })
                .collect();
            let files = &self.shared.files;
            match self.shared.known.write().retire(oldest.first(), &ids) {
                // It is tried again after the next games.
                Err(error) if files::is_full(&error) => break,
                kept => kept.map_err(failed("keeping the ids of retired games"))?,
            }
            archived::forget(files.as_ref(), &self.shared.settings.folder, oldest.first())
                .map_err(failed("removing a retired volume"))?;
            self.shared.volumes.remove_oldest();
            self.shared.notify_index();
            recover::remove(files.as_ref(), oldest.folder()).map_err(failed("removing a retired volume"))?;
            self.room.changed();
        }
        Ok(())
    }
}

/// The games of a group that can be stored, and those that stand in it a second time.
#[derive(Default)]
struct Admitted {
    games: Vec<Pending>,
    twice: Vec<Pending>,
}

/// What is done after the games that came before it.
enum Other {
    Delete(Vec<u64>, oneshot::Sender<Result<Deleted, VolumeError>>),
    Archived,
    Close,
}

/// Queues a game, or gives what else is to be done.
fn take(command: Command, waiting: &mut Vec<Pending>) -> Option<Other> {
    match command {
        Command::Append(pending) => {
            waiting.push(pending);
            None
        }
        Command::Delete(sequences, told) => Some(Other::Delete(sequences, told)),
        Command::Archived => Some(Other::Archived),
        Command::Close => Some(Other::Close),
    }
}

fn refused_for_now(reason: &impl std::fmt::Display) -> Verdict {
    Verdict::Refused {
        reason: reason.to_string(),
        retry: true,
    }
}

fn failed<E: std::fmt::Display>(doing: &'static str) -> impl FnOnce(E) -> StoreFailed {
    move |error| StoreFailed {
        reason: format!("{doing}: {error}"),
    }
}
