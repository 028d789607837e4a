//! Commands to the thread that writes.

use tokio::sync::oneshot;

use crate::{error::VolumeError, store::append::Pending};

/// A command to the writer.
pub enum Command {
    /// Make a game durable.
    Append(Pending),
    /// Delete games; answered once that is durable.
    Delete(Vec<u64>, oneshot::Sender<Result<Deleted, VolumeError>>),
    /// More volumes are in the archive: those that are retired can be removed.
    Archived,
    /// Commit the games that wait, and close the store.
    Close,
}

/// Numbers of deleted games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Games.
    pub games: u64,
    /// Number of their positions with visit counts.
    pub positions: u64,
}
