//! Sealed volumes on their way to the archive: one after the other, each written whole before it may be removed here.
//!
//! That a volume is there is remembered in `archived/<first sequence number>`, which names the archive: with another one
//! everything is written again. A crash between the two writes the same file once more. While the archive is away
//! this is tried again and again, and no volume is removed; the disk's limit bounds that ([`crate::log::room`]).

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
};

use bytes::Bytes;
use service::backoff::Backoff;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    exchange::{
        archive::{ArchiveError, Header, Writer},
        archive_store::ArchiveStore,
    },
    log::volume::Volume,
    record,
    store::{archived, command::Command, shared::Shared},
};

/// The thread that writes to the archive.
pub struct Archiver {
    archive_store: ArchiveStore,
    name: String,
    shared: Arc<Shared>,
    /// Weak, since the writer ends when nobody can send to it any more.
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
    /// What the operating system reports.
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
        loop {
            let archived_to = self.shared.archived_to.load(Ordering::SeqCst);
            self.shared.metrics.unarchived(self.shared.unarchived());
            let sealed = self.shared.volumes.sealed();
            let Some((volume, end)) = sealed.into_iter().find(|(_, end)| *end > archived_to) else {
                self.shared.sealed.notified().await;
                continue;
            };
            if !self.is_archived(volume.first()) && !self.archive(&volume, end, shutdown).await {
                return;
            }
            self.shared.archived_to.store(end, Ordering::SeqCst);
            if let Some(queue) = self.queue.upgrade() {
                // A store that is closing looks itself when it is opened again.
                let _ = queue.send(Command::Archived).await;
            }
        }
    }

    /// Writes a volume until that has gone well; false where the store is closed before.
    async fn archive(&self, volume: &Volume, end: u64, shutdown: &CancellationToken) -> bool {
        let (first, last) = (volume.first(), end.saturating_sub(1));
        let mut backoff = Backoff::for_connections();
        loop {
            let written = match self.packed(volume, end) {
                Ok((bytes, games)) => {
                    let length = bytes.len();
                    let put = self.archive_store.put(&self.name, first, last, bytes).await;
                    put.map(|()| (length, games)).map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            let reason = match written {
                Ok((bytes, games)) => {
                    // Not an error: a full disk is a reason to remove the volume.
                    if let Err(error) = self.remember(first) {
                        tracing::warn!(first, %error, "cannot remember that a volume is in the archive");
                    }
                    self.shared.metrics.archived(bytes);
                    tracing::info!(first, last, games, bytes, "a sealed volume is in the archive");
                    return true;
                }
                Err(reason) => reason,
            };
            self.shared.metrics.archive_failed();
            // At 1, 2, 4, 8, … attempts: an outage of a day must not fill the disk with its own log.
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
                return false;
            }
        }
    }

    /// A volume's games as an archive file, and their number. What cannot be read is left out, as in every export.
    fn packed(&self, volume: &Volume, end: u64) -> Result<(Bytes, u64), ArchiveError> {
        let settings = &self.shared.settings;
        let header = Header {
            game: settings.game.clone(),
            options: settings.options,
            written_by: format!("minuet {}", env!("CARGO_PKG_VERSION")),
        };
        // A volume is bounded (`settings::MAX_VOLUME_BYTES`), and so is this.
        let mut writer = Writer::new(Vec::new(), &header)?;
        for sequence in volume.first()..end {
            if volume.deleted(sequence) || volume.lost(sequence).is_some() {
                continue;
            }
            let game = volume
                .read(sequence)
                .map_err(|error| error.to_string())
                .and_then(|record| record::decode(&record).map_err(|error| error.to_string()));
            match game {
                Ok(game) => writer.add(&game)?,
                Err(reason) => self.shared.mark_unreadable(sequence, &reason),
            }
        }
        let (bytes, games) = writer.finish()?;
        Ok((bytes.into(), games))
    }

    fn is_archived(&self, first: u64) -> bool {
        let Shared { files, settings, .. } = &*self.shared;
        archived::is_archived(
            files.as_ref(),
            &settings.folder,
            first,
            self.archive_store.location(),
        )
    }

    fn remember(&self, first: u64) -> io::Result<()> {
        let Shared { files, settings, .. } = &*self.shared;
        archived::remember(
            files.as_ref(),
            &settings.folder,
            first,
            self.archive_store.location(),
        )
    }
}
