//! Commands to the writer thread: a game that is being stored, with the message that its sender receives, and others.

use bytes::Bytes;
use proto::v1::{AppendAck, DeleteGamesReply};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{error::VolumeError, log::frame::Id, record::validate::Checked};

/// Outcome of an appended game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The game is durable.
    Stored,
    /// The game was already stored.
    Duplicate,
    /// The game was refused.
    Refused {
        /// Reason of the refusal.
        reason: String,
        /// True if the reason is temporary, so that the sender should send the game again.
        retry: bool,
    },
}

impl Verdict {
    /// Returns a permanent refusal, so that the sender does not send the game again.
    pub fn refused(reason: impl ToString) -> Self {
        Self::Refused {
            reason: reason.to_string(),
            retry: false,
        }
    }

    /// Returns a temporary refusal, after which the sender sends the game again.
    pub fn refused_for_now(reason: impl ToString) -> Self {
        Self::Refused {
            reason: reason.to_string(),
            retry: true,
        }
    }

    /// Returns the acknowledgement for the sender of the game with this id.
    pub fn ack(self, id: Bytes) -> AppendAck {
        let ack = AppendAck {
            id,
            ..AppendAck::default()
        };
        match self {
            Self::Stored => ack,
            Self::Duplicate => AppendAck {
                duplicate: true,
                ..ack
            },
            Self::Refused { reason, retry } => AppendAck {
                refused: reason,
                retry,
                ..ack
            },
        }
    }
}

/// Callback that sends the verdict to the game's sender. If the store fails first, it is dropped without a call.
pub type Reply = Box<dyn FnOnce(Verdict) + Send>;

/// A checked and packed game that waits to be made durable.
pub struct Pending {
    /// Result of the check.
    pub checked: Checked,
    /// The packed game.
    pub record: Vec<u8>,
    /// Callback that receives the verdict.
    pub reply: Reply,
    /// Permit for the game's share of the memory of the queue.
    pub room: OwnedSemaphorePermit,
}

impl Pending {
    /// Returns the id of the game.
    pub fn id(&self) -> Id {
        self.checked.id
    }
}

/// A command to the writer.
pub enum Command {
    /// Makes a game durable.
    Append(Pending),
    /// Deletes games. The reply is sent when the deletion is durable.
    Delete(Vec<u64>, oneshot::Sender<Result<DeleteGamesReply, VolumeError>>),
    /// Reports that more volumes are in the archive, so that retired ones can be removed.
    Archived,
    /// Commits the waiting games and closes the store.
    Close,
}
