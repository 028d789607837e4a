//! Archives sealed volumes, one after the other. A volume may be removed only when all its games are archived.
//!
//! `archived.json` records which volumes are archived, and where: after a change of the archive everything is written again. A crash
//! between the two writes causes a second write of the same file. Failed writes and failed reads are repeated without end.
//! Meanwhile no volume is removed, and the limit of the disk ([`crate::log::room`]) bounds their size. A volume with a damaged game is
//! not archived: it stays until the next opening of the store has recorded the game as lost.

use std::{
    collections::BTreeSet,
    convert::Infallible,
    io,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use service::backoff::Backoff;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    error::ReadError,
    exchange::{
        archive::{ArchiveError, Header, Writer},
        archive_store::ArchiveStore,
    },
    log::volume::Volume,
    record,
    store::{append::Command, shared::Shared},
};

/// Number of reads after which a game with a wrong checksum counts as damaged.
const DAMAGED_READS: u32 = 3;

/// File that records the archived volumes.
const FILE: &str = "archived.json";

/// Version of [`FILE`].
const VERSION: u32 = 1;

/// The archived volumes, as [`FILE`] records them.
#[derive(Debug, Serialize, Deserialize)]
struct Archived {
    version: u32,
    /// Location of the archive.
    archive: String,
    /// First sequence numbers of the volumes.
    volumes: BTreeSet<u64>,
}

/// Error: a volume cannot be packed for the archive.
#[derive(Debug, thiserror::Error)]
enum PackError {
    /// Games were read and are damaged: the sequence number of each, and what is wrong.
    #[error("games are damaged: {0:?}")]
    Damaged(Vec<(u64, String)>),
    /// The disk reported an error, or the archive file cannot be made.
    #[error("{0}")]
    Failed(String),
}

impl From<ArchiveError> for PackError {
    fn from(error: ArchiveError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The thread that writes to the archive.
pub struct Archiver {
    /// The archive.
    pub archive_store: ArchiveStore,
    /// Name of the store in the archive.
    pub name: String,
    /// Parts that the threads of the store share.
    pub shared: Arc<Shared>,
    /// A weak sender, because the writer ends when no other sender exists.
    pub queue: mpsc::WeakSender<Command>,
}

/// Handle of the running thread. Dropping it cancels the thread.
#[derive(Debug)]
pub struct Archiving {
    shutdown: DropGuard,
    thread: JoinHandle<()>,
}

impl Archiving {
    /// Cancels the thread and waits for its end.
    pub fn end(self) {
        drop(self.shutdown);
        // The panic hook has logged a panic. Volumes that are not archived yet are archived after the next opening.
        let _ = self.thread.join();
    }
}

impl Archiver {
    /// Starts the thread.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn start(self) -> io::Result<Archiving> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shutdown = CancellationToken::new();
        let thread = thread::Builder::new().name("replay-archiver".into()).spawn({
            let shutdown = shutdown.clone();
            move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = shutdown.cancelled() => {}
                        never = self.run() => match never {},
                    }
                });
            }
        })?;
        Ok(Archiving {
            shutdown: shutdown.drop_guard(),
            thread,
        })
    }

    async fn run(&self) -> Infallible {
        let mut archived = self.archived();
        // Volumes that this process cannot archive because of damage.
        let mut damaged = BTreeSet::new();
        loop {
            let sealed = self.shared.volumes.sealed();
            self.set_archived_to(&sealed, &archived).await;
            let unarchived = self.shared.unarchived();
            self.shared.metrics.unarchived_volumes.set(unarchived as f64);
            let next = sealed.iter().find(|(volume, _)| {
                !archived.contains(&volume.first()) && !damaged.contains(&volume.first())
            });
            let Some((volume, end)) = next else {
                self.shared.sealed.notified().await;
                continue;
            };
            if !self.archive(volume, *end).await {
                damaged.insert(volume.first());
                continue;
            }
            archived.insert(volume.first());
            archived.retain(|first| sealed.iter().any(|(volume, _)| volume.first() == *first));
            // A failed write is not an error of archiving: the disk may be full, and that is a reason to remove the volume.
            if let Err(error) = self.remember(&archived) {
                tracing::warn!(first = volume.first(), %error, "cannot record that a volume is in the archive");
            }
        }
    }

    /// Lets the writer remove the oldest volumes, as far as they are archived without a gap.
    async fn set_archived_to(&self, sealed: &[(Arc<Volume>, u64)], archived: &BTreeSet<u64>) {
        let without_gap = sealed
            .iter()
            .take_while(|(volume, _)| archived.contains(&volume.first()));
        let Some((_, end)) = without_gap.last() else {
            return;
        };
        if self.shared.archived_to.fetch_max(*end, Ordering::SeqCst) < *end
            && let Some(queue) = self.queue.upgrade()
        {
            // A store that is closing removes volumes when it is opened again.
            let _ = queue.send(Command::Archived).await;
        }
    }

    /// Writes a volume to the archive, and repeats the attempt until it succeeds. Returns false if games of the volume are damaged.
    async fn archive(&self, volume: &Volume, end: u64) -> bool {
        let (first, last) = (volume.first(), end.saturating_sub(1));
        let mut backoff = Backoff::for_connections();
        let mut damaged = 0;
        loop {
            let packed = self.packed(volume, end);
            if let Err(PackError::Damaged(games)) = &packed {
                damaged += 1;
                if damaged == DAMAGED_READS {
                    self.report_damage(first, games);
                    return false;
                }
            }
            let reason = match packed {
                Ok((bytes, games)) => {
                    let length = bytes.len();
                    match self.archive_store.put(&self.name, first, last, bytes).await {
                        Ok(()) => {
                            tracing::info!(
                                first,
                                last,
                                games,
                                bytes = length,
                                "a sealed volume is in the archive"
                            );
                            return true;
                        }
                        Err(error) => error.to_string(),
                    }
                }
                Err(error) => error.to_string(),
            };
            self.shared.metrics.archive_failures.increment(1);
            // Attempts 1, 2, 4, 8, … are logged, so that a long outage does not fill the disk with log lines.
            if (backoff.attempts() + 1).is_power_of_two() {
                tracing::warn!(
                    archive = self.archive_store.location(),
                    first,
                    last,
                    reason,
                    waiting = self.shared.unarchived(),
                    "a sealed volume cannot be archived; trying again, and nothing is removed until it is"
                );
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Packs the games of a volume that are neither deleted nor recorded as lost. Returns the archive file and the number of
    /// games.
    fn packed(&self, volume: &Volume, end: u64) -> Result<(Bytes, u64), PackError> {
        let settings = &self.shared.settings;
        let header = Header {
            game: settings.game.clone(),
            options: settings.options,
            written_by: format!("minuet {}", env!("CARGO_PKG_VERSION")),
        };
        // The length of a volume is limited (`settings::MAX_VOLUME_BYTES`), and so is the memory of the archive file.
        let mut writer = Writer::new(Vec::new(), &header)?;
        let mut damaged = Vec::new();
        for sequence in volume.first()..end {
            if volume.deleted(sequence) || volume.lost(sequence).is_some() {
                continue;
            }
            let read = match volume.read(sequence) {
                Ok(record) => record::decode(&record).map_err(|error| error.to_string()),
                Err(ReadError::Volume(error)) => {
                    return Err(PackError::Failed(format!("reading game {sequence}: {error}")));
                }
                Err(error) => Err(error.to_string()),
            };
            match read {
                Ok(game) => writer.add(&game)?,
                Err(reason) => damaged.push((sequence, reason)),
            }
        }
        if !damaged.is_empty() {
            return Err(PackError::Damaged(damaged));
        }
        let (bytes, games) = writer.finish()?;
        Ok((bytes.into(), games))
    }

    /// Excludes damaged games of a volume from sampling. The next opening of the store records them as lost.
    fn report_damage(&self, first: u64, games: &[(u64, String)]) {
        for (sequence, reason) in games {
            self.shared.mark_unreadable(*sequence, reason);
        }
        tracing::error!(
            first,
            "a sealed volume has damaged games, and is neither archived nor removed before the store is started again"
        );
    }

    /// Returns the first sequence numbers of the volumes that are in this archive.
    fn archived(&self) -> BTreeSet<u64> {
        let Shared { files, settings, .. } = &*self.shared;
        let text = files.read(&settings.folder.join(FILE)).unwrap_or_default();
        match serde_json::from_slice::<Archived>(&text) {
            Ok(found) if found.version == VERSION && found.archive == self.archive_store.location() => {
                found.volumes
            }
            _ => BTreeSet::new(),
        }
    }

    fn remember(&self, volumes: &BTreeSet<u64>) -> io::Result<()> {
        let Shared { files, settings, .. } = &*self.shared;
        let text = serde_json::to_vec(&Archived {
            version: VERSION,
            archive: self.archive_store.location().into(),
            volumes: volumes.clone(),
        })?;
        files.replace(&settings.folder.join(FILE), &text)
    }
}
