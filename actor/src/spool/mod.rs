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
#[cfg(test)]
mod golden;
mod index;
pub mod sender;
#[cfg(test)]
mod tests;
mod writer;

use std::{io, path::PathBuf, time::Duration};

use durable::frame;
use parking_lot::{Condvar, Mutex};
use proto::v1::Game;
use tokio::sync::Notify;

use crate::GameId;
use folder::Folder;
use index::{Index, Settled};

pub use folder::Recovered;
pub use index::Position;
pub use writer::{Finished, FinishedGames, Lost, start as start_writer};

/// Kind of the frames of games.
const GAME: u8 = b'P';

/// Error: the spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// A file operation failed, for example because the disk is full.
    #[error("{action} {path}")]
    Io {
        /// The operation, as the beginning of the message.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// Another actor uses the folder.
    #[error("{path} is the spool of another running actor; give each actor a spool folder of its own")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A newer build wrote games into the folder. Nothing was changed.
    #[error(
        "{path} holds frame {found}, which this build does not know; nothing was changed. \
         Start the build that wrote them, or a newer one, to send them"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Name of the frame.
        found: String,
    },
    /// A written game is missing or damaged.
    #[error("a finished game in {path} cannot be read any more: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
}

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
    /// [`SpoolError`] if the folder cannot be used.
    pub fn open(path: PathBuf, max_bytes: u64) -> Result<(Self, Recovered), SpoolError> {
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
    /// [`SpoolError::Io`], e.g. if the disk is full. Nothing is kept then, and the caller may try again.
    pub fn append(&self, games: &[Finished]) -> Result<(), SpoolError> {
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
    pub fn next_after(&self, position: Option<Position>) -> Option<(Position, GameId)> {
        self.index.lock().next_after(position)
    }

    /// Completes when games may have been added since the last completion. Supports one waiter.
    pub fn added(&self) -> tokio::sync::futures::Notified<'_> {
        self.added.notified()
    }

    /// Reads a game.
    ///
    /// # Errors
    /// [`SpoolError::Damaged`] if the game cannot be read; it is then moved to `damaged/` and not returned again.
    pub fn read(&self, position: Position) -> Result<Game, SpoolError> {
        let Some(range) = self.index.lock().range(position) else {
            return Err(self.damaged(position, "it is not listed".into()));
        };
        let bytes = match self.folder.read(position.file, range) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.set_aside(position);
                return Err(error);
            }
        };
        folder::game(&bytes).map_err(|reason| {
            self.set_aside(position);
            self.damaged(position, reason)
        })
    }

    /// Removes a game that the store has acknowledged. False if no such game is waiting.
    ///
    /// # Errors
    /// [`SpoolError::Io`] if its file cannot be removed. The game is then sent again after a restart, which is harmless.
    pub fn acknowledge(&self, id: GameId) -> Result<bool, SpoolError> {
        let settled = self.index.lock().settle(id);
        let was_waiting = settled != Settled::Unknown;
        self.clear(settled)?;
        Ok(was_waiting)
    }

    /// Moves a game that the store will never accept to `refused/`, with a text file that gives the reason.
    ///
    /// # Errors
    /// [`SpoolError`] of the file system; the game then stays in the spool.
    pub fn refuse(&self, id: GameId, reason: &str) -> Result<PathBuf, SpoolError> {
        let place = self.index.lock().place(id);
        let Some((position, range)) = place else {
            return Err(SpoolError::Damaged {
                path: self.folder.path().into(),
                reason: format!("game {id} is not listed"),
            });
        };
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

    /// Returns the limit, in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Blocks until space is freed, but at most for `at_most`; then measures `refused/` and `damaged/` again.
    pub fn wait_for_room(&self, at_most: Duration) {
        let mut index = self.index.lock();
        self.freed.wait_for(&mut index, at_most);
        drop(index);
        self.folder.measure_set_aside();
    }

    fn set_aside(&self, position: Position) {
        let settled = self.index.lock().settle_damaged(position);
        if let Err(error) = self.clear(settled) {
            tracing::error!(error = %service::chain(&error), "cannot set a damaged file of the spool aside");
        }
    }

    fn clear(&self, settled: Settled) -> Result<(), SpoolError> {
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

    fn damaged(&self, position: Position, reason: String) -> SpoolError {
        SpoolError::Damaged {
            path: self.folder.file(position.file),
            reason,
        }
    }
}
