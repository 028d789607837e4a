//! The durable spool: finished games wait here until the store has acknowledged them.
//!
//! Games that finish together are written to one file (framed, forced to the disk, moved into place), and the
//! file is removed when the last of them is acknowledged. A game that the store refuses is kept in
//! `refused/`, a file with damage in `damaged/`; both count towards the limit, so nothing is dropped
//! silently and nothing grows without bound.
//!
//! The store recognises games by id, so games sent without an acknowledgement are sent again.
//!
//! | module | purpose |
//! |---|---|
//! | [`folder`] | the files: names, recovery at start, space taken |
//! | [`index`] | positions of games and acknowledgements |
//! | [`writer`] | the thread that takes finished games from the workers |

mod folder;
mod index;
pub mod sender;
mod writer;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, anyhow};
use durable::frame;
use parking_lot::{Condvar, Mutex};
use proto::v1::Game;
use tokio::sync::Notify;

use crate::GameId;
use folder::Folder;
use index::{Index, Settled};

pub use folder::Recovered;
pub use index::SpoolPosition;
pub use writer::{Finished, FinishedGames, start as start_writer};

/// Kind of the frames of games.
const GAME: u8 = b'P';

/// Size of the spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of games without acknowledgement.
    pub games: u64,
    /// Bytes on the disk, including `refused/` and `damaged/`.
    pub bytes: u64,
    /// Bytes in `refused/` and `damaged/`.
    pub set_aside: u64,
}

/// The spool, shared by the writing thread and the sending task.
#[derive(Debug)]
pub struct Spool {
    folder: Folder,
    max_bytes: u64,
    index: Mutex<Index>,
    /// Notified when games are added.
    added: Notify,
    /// Notified when space is freed.
    freed: Condvar,
}

impl Spool {
    /// Opens the spool in a folder, which is created if necessary; also returns the folder's contents.
    ///
    /// # Errors
    /// The folder cannot be used, another actor uses it, or a newer build wrote games into it.
    pub fn open(path: PathBuf, max_bytes: u64) -> anyhow::Result<(Self, Recovered)> {
        let folder = Folder::open(path)?;
        folder.check_versions()?;
        let mut index = Index::new(folder.first_free_number()?);
        let recovered = folder.recover(&mut index)?;
        let spool = Self {
            folder,
            max_bytes,
            index: Mutex::new(index),
            added: Notify::new(),
            freed: Condvar::new(),
        };
        Ok((spool, recovered))
    }

    /// Writes games (encoded [`Game`] messages); they are durable when this returns.
    ///
    /// # Errors
    /// The file system failed, e.g. because the disk is full. Nothing is kept then, and the caller may try again.
    pub fn append(&self, games: &[Finished]) -> anyhow::Result<()> {
        let mut bytes = Vec::new();
        let mut entries = Vec::with_capacity(games.len());
        for game in games {
            let start = bytes.len();
            frame::append(GAME, &[&game.bytes], &mut bytes);
            entries.push((game.id, start..bytes.len()));
        }
        let number = self.index.lock().take_number();
        self.folder.write(number, &bytes)?;
        let space = folder::space(bytes.len() as u64);
        self.index.lock().add(number, space, entries, false);
        self.added.notify_one();
        Ok(())
    }

    /// Returns the oldest game after `position` that has not been acknowledged.
    pub fn next_after(&self, position: Option<SpoolPosition>) -> Option<(SpoolPosition, GameId)> {
        self.index.lock().next_after(position)
    }

    /// Completes when games may have been added since the last completion. Supports one waiter.
    pub fn added(&self) -> tokio::sync::futures::Notified<'_> {
        self.added.notified()
    }

    /// Reads a game.
    ///
    /// # Errors
    /// The game cannot be read any more; it is then moved to `damaged/` and not returned again.
    pub fn read(&self, position: SpoolPosition) -> anyhow::Result<Game> {
        let range = self.index.lock().range(position).context("it is not listed");
        let bytes = range.and_then(|range| self.folder.read(position.file, range));
        let game = bytes.and_then(|bytes| folder::game(&bytes).map_err(anyhow::Error::msg));
        game.inspect_err(|_| self.set_aside(position)).with_context(|| {
            let path = self.folder.file(position.file);
            format!("a finished game in {} cannot be read any more", path.display())
        })
    }

    /// Removes a game that the store has acknowledged. False if no such game is waiting.
    ///
    /// # Errors
    /// The file of the game cannot be removed. The game is then sent again after a restart; the store keeps it once.
    pub fn acknowledge(&self, id: GameId) -> anyhow::Result<bool> {
        let settled = self.index.lock().settle(id);
        let was_waiting = settled != Settled::Unknown;
        self.clear(settled)?;
        Ok(was_waiting)
    }

    /// Moves a game that the store will never accept to `refused/`, with a text file that gives the reason.
    ///
    /// # Errors
    /// The file system failed; the game then stays in the spool.
    pub fn refuse(&self, id: GameId, reason: &str) -> anyhow::Result<PathBuf> {
        let place = self.index.lock().place(id);
        let (position, range) = place.ok_or_else(|| anyhow!("the spool lists no game {id}"))?;
        let bytes = self.folder.read(position.file, range)?;
        let path = self.folder.keep_refused(id, &bytes, reason)?;
        self.acknowledge(id)?;
        Ok(path)
    }

    /// Returns the size of the spool.
    pub fn size(&self) -> Size {
        let index = self.index.lock();
        let set_aside = self.folder.set_aside();
        Size {
            games: index.games(),
            bytes: index.bytes() + set_aside,
            set_aside,
        }
    }

    /// True if the spool is over its limit, so that self-play should pause.
    pub fn is_full(&self) -> bool {
        self.size().bytes > self.max_bytes
    }

    /// Blocks until space is freed, but at most for `at_most`; then measures `refused/` and `damaged/` again.
    pub fn wait_for_room(&self, at_most: Duration) {
        let mut index = self.index.lock();
        self.freed.wait_for(&mut index, at_most);
        drop(index);
        self.folder.measure_set_aside();
    }

    fn set_aside(&self, position: SpoolPosition) {
        let settled = self.index.lock().settle_damaged(position);
        if let Err(error) = self.clear(settled) {
            tracing::error!(error = %service::chain(&*error), "cannot set a damaged file of the spool aside");
        }
    }

    fn clear(&self, settled: Settled) -> anyhow::Result<()> {
        match settled {
            Settled::Unknown | Settled::FileWaits => return Ok(()),
            Settled::FileDone {
                number,
                is_damaged: true,
            } => self.folder.keep_damaged(number)?,
            Settled::FileDone {
                number,
                is_damaged: false,
            } => self.folder.remove(number)?,
        }
        self.freed.notify_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
