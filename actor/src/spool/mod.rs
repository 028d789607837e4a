//! The durable spool: finished games wait here until the store has acknowledged them.
//!
//! Games that finish together are written to one file (framed, forced to the disk, moved into place), and the
//! file is removed when the last of them is acknowledged. A game that the store refuses is kept in
//! `refused/`, a file with damage in `damaged/`; both count towards the limit, so nothing is dropped
//! silently and nothing grows without bound.
//!
//! Where a run has several stores, each game waits in the lane of the one that it belongs to. Games of an earlier process
//! that knew another list of stores wait in none: one of those may have stored them and died before it said so. They are
//! undecided until the stores were asked.
//!
//! | module | what it is for |
//! |---|---|
//! | [`frame`] | records in a file that may be torn anywhere |
//! | [`folder`] | the files: names, what is found at start, space taken |
//! | [`index`] | which games lie where, and which are acknowledged |
//! | [`writer`] | the thread that takes finished games from the workers |

pub(crate) mod durable;
mod folder;
mod frame;
mod index;
pub mod sender;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    io,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use config::shards::Shards;
use parking_lot::{Condvar, Mutex};
use prost::Message as _;
use proto::v1::Game;
use tokio::sync::Notify;

use crate::GameId;
use folder::Folder;
use index::{Index, Settled};

pub use folder::Recovered;
pub use index::Position;
pub use writer::{Finished, FinishedGames, Lost, start as start_writer};

/// Why the spool cannot do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The file system, a full disk included.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Another actor uses the folder.
    #[error("{path} is the spool of another running actor; give each actor a spool folder of its own")]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A game that was written is not there any more, or is damaged.
    #[error("a finished game in {path} cannot be read any more: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// What the spool holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Games that wait for an acknowledgement.
    pub games: u64,
    /// Bytes on the disk, the games that were set aside included.
    pub bytes: u64,
    /// Of these, bytes in `refused/` and `damaged/`.
    pub set_aside: u64,
}

/// The spool, shared by the thread that writes and the task that sends.
#[derive(Debug)]
pub struct Spool {
    folder: Folder,
    max_bytes: u64,
    shards: Shards,
    index: Mutex<Index>,
    /// Rung when games were added to a store's lane.
    added: Vec<Notify>,
    /// How often games came into lanes late, before others that were there already.
    decisions: AtomicU64,
    /// Rung when space was freed.
    freed: Condvar,
}

impl Spool {
    /// Opens the spool in a folder, which is made if need be, for games of these stores; what it says was found there.
    ///
    /// # Errors
    /// [`SpoolError`] where the folder cannot be used.
    pub fn open(path: PathBuf, max_bytes: u64, shards: Shards) -> Result<(Self, Recovered), SpoolError> {
        let folder = Folder::open(path)?;
        let mut index = Index::new(folder.first_free_number()?);
        let names = shards.names();
        let are_the_same = folder.stores().is_some_and(|before| before == names);
        // One store knows its games itself.
        let are_decided = are_the_same || shards.count() == 1;
        let recovered = folder.recover(&mut index, |id| are_decided.then(|| shards.of(&id.0)))?;
        if are_decided || recovered.games == 0 {
            if !are_the_same {
                folder.set_stores(Some(&names))?;
            }
        } else {
            // Whatever comes, the games here are not all of one list from now on.
            folder.set_stores(None)?;
        }
        let spool = Self {
            folder,
            max_bytes,
            index: Mutex::new(index),
            added: names.iter().map(|_| Notify::new()).collect(),
            decisions: AtomicU64::new(0),
            shards,
            freed: Condvar::new(),
        };
        Ok((spool, recovered))
    }

    /// At most so many of the oldest games of which it is not known whether a store has them.
    pub fn undecided(&self, at_most: usize) -> Vec<GameId> {
        let index = self.index.lock();
        let mut position = None;
        let next = || {
            let (next, id) = index.next_after(None, position)?;
            position = Some(next);
            Some(id)
        };
        std::iter::from_fn(next).take(at_most).collect()
    }

    /// No store has these games: they are sent to the ones that they belong to.
    pub fn decide(&self, ids: &[GameId]) {
        {
            let mut index = self.index.lock();
            for id in ids {
                index.decide(*id, Some(self.shards.of(&id.0)));
            }
        }
        self.decisions.fetch_add(1, Ordering::SeqCst);
        self.added.iter().for_each(Notify::notify_one);
    }

    /// Changes whenever games have come into lanes that are older than others there: who goes through a lane begins again.
    pub fn decisions(&self) -> u64 {
        self.decisions.load(Ordering::SeqCst)
    }

    /// All games are decided: with the next start they still are, if the stores are the same.
    ///
    /// # Errors
    /// [`SpoolError::Io`]; the stores are asked again with the next start then.
    pub fn all_decided(&self) -> Result<(), SpoolError> {
        self.folder.set_stores(Some(&self.shards.names()))
    }

    /// Writes games (encoded [`Game`] messages); they are durable when this returns.
    ///
    /// # Errors
    /// [`SpoolError::Io`], e.g. where the disk is full; nothing is kept then, and trying again is fine.
    pub fn append(&self, games: &[Finished]) -> Result<(), SpoolError> {
        let mut bytes = Vec::new();
        let mut entries = Vec::with_capacity(games.len());
        for game in games {
            let start = bytes.len();
            frame::append(&game.bytes, &mut bytes);
            entries.push((game.id, start..bytes.len()));
        }
        let number = self.index.lock().take_number();
        self.folder.write(number, &bytes)?;
        let space = folder::space(bytes.len() as u64);
        let lane = |id: GameId| Some(self.shards.of(&id.0));
        self.index.lock().add(number, space, entries, false, lane);
        self.added.iter().for_each(Notify::notify_one);
        Ok(())
    }

    /// The oldest game of a store (by its number) after `position` that has not been acknowledged.
    pub fn next_after(&self, store: usize, position: Option<Position>) -> Option<(Position, GameId)> {
        self.index.lock().next_after(Some(store), position)
    }

    /// Completes when games may have been added for this store since it last completed. For one waiter.
    ///
    /// # Panics
    /// Where the spool was not opened for so many stores.
    pub fn added(&self, store: usize) -> tokio::sync::futures::Notified<'_> {
        self.added[store].notified()
    }

    /// Reads a game back.
    ///
    /// # Errors
    /// [`SpoolError::Damaged`] where the disk has lost it; it is set aside then and not handed out again.
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
        let game = frame::payload(&bytes)
            .map_err(str::to_owned)
            .and_then(|payload| Game::decode(payload).map_err(|error| error.to_string()));
        game.map_err(|reason| {
            self.set_aside(position);
            self.damaged(position, reason)
        })
    }

    /// Forgets a game that the store keeps now. False where no such game waits.
    ///
    /// # Errors
    /// [`SpoolError::Io`] where its file cannot be removed; the game is sent once more after a restart then, which does no harm.
    pub fn acknowledge(&self, id: GameId) -> Result<bool, SpoolError> {
        let settled = self.index.lock().settle(id);
        let was_waiting = settled != Settled::Unknown;
        self.clear(settled)?;
        Ok(was_waiting)
    }

    /// Moves a game that the store will never take to `refused/`, beside a text that says why.
    ///
    /// # Errors
    /// [`SpoolError`]; the game stays in the spool then.
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

    /// What it holds.
    pub fn size(&self) -> Size {
        let index = self.index.lock();
        let set_aside = self.folder.set_aside();
        Size {
            games: index.games(),
            bytes: index.bytes() + set_aside,
            set_aside,
        }
    }

    /// Whether self-play should pause.
    pub fn is_full(&self) -> bool {
        self.size().bytes > self.max_bytes
    }

    /// The limit, in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Blocks until space was freed, or for so long; looks whether games that were set aside have been taken away.
    pub fn wait_for_room(&self, at_most: Duration) {
        let mut index = self.index.lock();
        self.freed.wait_for(&mut index, at_most);
        drop(index);
        self.folder.measure_set_aside();
    }

    fn set_aside(&self, position: Position) {
        let settled = self.index.lock().settle_damaged(position);
        if let Err(error) = self.clear(settled) {
            tracing::error!(%error, "cannot set a damaged file of the spool aside");
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
