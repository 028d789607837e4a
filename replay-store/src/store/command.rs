//! Commands to the writer thread.

use tokio::sync::oneshot;

use crate::{error::VolumeError, store::append::Pending};

/// A command to the writer.
pub enum Command {
    /// Makes a game durable.
    Append(Pending),
    /// Deletes games. The reply is sent when the deletion is durable.
    Delete(Vec<u64>, oneshot::Sender<Result<Deleted, VolumeError>>),
    /// Reports that more volumes are in the archive, so that retired ones can be removed.
    Archived,
    /// Commits the waiting games and closes the store.
    Close,
}

/// Counts of what a deletion removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Number of games.
    pub games: u64,
    /// Number of their positions with visit counts.
    pub positions: u64,
}
