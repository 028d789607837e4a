//! Archives sealed volumes, one after the other. A volume may be removed only when all its games are archived.
//!
//! `archived.json` records which volumes are archived, and where: after a change of the archive everything is written again. A crash
//! between the two writes causes a second write of the same file. Failed writes and failed reads are repeated without end.
//! Meanwhile no volume is removed, and the limit of the disk ([`crate::log::room`]) bounds their size. A volume with a damaged game is
//! not archived: it stays until the next opening of the store has recorded the game as lost.

use std::{
    collections::BTreeSet,
    io,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use proto::v1::Game;
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

/// Result of an attempt to archive a volume.
enum Outcome {
    Archived,
    /// Games of the volume are damaged.
    Damaged,
    /// The store is being closed.
    Closed,
}

/// Error: a volume cannot be packed for the archive.
#[derive(Debug, thiserror::Error)]
enum PackError {
    /// The game was read and is damaged.
    #[error("game {sequence} is damaged: {reason}")]
    Damaged { sequence: u64, reason: String },
    /// The disk reported an error, or the archive file cannot be made.
    #[error("{0}")]
    Failed(String),
}

impl From<ArchiveError> for PackError {
    fn from(error: ArchiveError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Returns the sequence numbers of a volume's games that are neither deleted nor recorded as lost.
fn present(volume: &Volume, end: u64) -> impl Iterator<Item = u64> {
    (volume.first()..end).filter(|&sequence| !volume.deleted(sequence) && volume.lost(sequence).is_none())
}

/// Reads a game.
fn read(volume: &Volume, sequence: u64) -> Result<Game, PackError> {
    let record = volume.read(sequence).map_err(|error| match error {
        ReadError::Volume(error) => PackError::Failed(format!("reading game {sequence}: {error}")),
        ReadError::Missing | ReadError::Damaged(_) => PackError::Damaged {
            sequence,
            reason: error.to_string(),
        },
    })?;
    record::decode(&record).map_err(|error| PackError::Damaged {
        sequence,
        reason: error.to_string(),
    })
}

/// The thread that writes to the archive.
pub struct Archiver {
    archive_store: ArchiveStore,
    name: String,
    shared: Arc<Shared>,
    /// A weak sender, because the writer ends when no other sender exists.
    queue: mpsc::WeakSender<Command>,
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
    /// Returns the archiver of the store that is called `name` in `archive_store`.
    pub fn new(
        archive_store: ArchiveStore,
        name: String,
        shared: Arc<Shared>,
        queue: mpsc::WeakSender<Command>,
    ) -> Self {
        Self {
            archive_store,
            name,
            shared,
            queue,
        }
    }

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
                        () = self.run(&shutdown) => {}
                    }
                });
            }
        })?;
        Ok(Archiving {
            shutdown: shutdown.drop_guard(),
            thread,
        })
    }

    async fn run(&self, shutdown: &CancellationToken) {
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
            match self.archive(volume, *end, shutdown).await {
                Outcome::Archived => {
                    archived.insert(volume.first());
                    archived.retain(|first| sealed.iter().any(|(volume, _)| volume.first() == *first));
                    // A failed write is not an error of archiving: the disk may be full, and that is a reason to remove the volume.
                    if let Err(error) = self.remember(&archived) {
                        tracing::warn!(first = volume.first(), %error, "cannot record that a volume is in the archive");
                    }
                }
                Outcome::Damaged => {
                    damaged.insert(volume.first());
                }
                Outcome::Closed => return,
            };
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

    /// Writes a volume to the archive, and repeats the attempt until it succeeds.
    async fn archive(&self, volume: &Volume, end: u64, shutdown: &CancellationToken) -> Outcome {
        let (first, last) = (volume.first(), end.saturating_sub(1));
        let mut backoff = Backoff::for_connections();
        let mut damaged = 0;
        loop {
            let written = match self.packed(volume, end) {
                Ok((bytes, games)) => {
                    let length = bytes.len();
                    let put = self.archive_store.put(&self.name, first, last, bytes).await;
                    put.map(|()| (length, games)).map_err(|error| error.to_string())
                }
                Err(error @ PackError::Damaged { .. }) => {
                    damaged += 1;
                    if damaged == DAMAGED_READS {
                        self.report_damage(volume, end);
                        return Outcome::Damaged;
                    }
                    Err(error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            let reason = match written {
                Ok((bytes, games)) => {
                    tracing::info!(first, last, games, bytes, "a sealed volume is in the archive");
                    return Outcome::Archived;
                }
                Err(reason) => reason,
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
            if !backoff.wait(shutdown).await {
                return Outcome::Closed;
            }
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
        for sequence in present(volume, end) {
            writer.add(&read(volume, sequence)?)?;
        }
        let (bytes, games) = writer.finish()?;
        Ok((bytes.into(), games))
    }

    /// Excludes the damaged games of a volume from sampling. The next opening of the store records them as lost.
    fn report_damage(&self, volume: &Volume, end: u64) {
        for sequence in present(volume, end) {
            if let Err(PackError::Damaged { reason, .. }) = read(volume, sequence) {
                self.shared.mark_unreadable(sequence, &reason);
            }
        }
        tracing::error!(
            first = volume.first(),
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
