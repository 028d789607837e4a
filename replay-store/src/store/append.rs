//! A game on its way into the store, and what its sender is told.

use bytes::Bytes;
use proto::v1::AppendAck;
use tokio::sync::OwnedSemaphorePermit;

use crate::{log::frame::Id, record::validate::Checked};

/// Outcome of an appended game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The game is durable.
    Stored,
    /// The game was already stored.
    Duplicate,
    /// The game was refused.
    Refused {
        /// Why.
        reason: String,
        /// True if the reason is temporary, so that the sender should send the game again.
        retry: bool,
    },
}

impl Verdict {
    /// A refusal for good.
    pub fn refused(reason: impl ToString) -> Self {
        Self::Refused {
            reason: reason.to_string(),
            retry: false,
        }
    }

    /// The message for the sender of the game with this id.
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

/// Tells the sender; dropped without a call where the store fails first.
pub type Reply = Box<dyn FnOnce(Verdict) + Send>;

/// A checked and packed game that waits to be made durable.
pub struct Pending {
    /// Result of the check.
    pub checked: Checked,
    /// The packed game.
    pub record: Vec<u8>,
    /// Tells the sender.
    pub reply: Reply,
    /// Share of the queue's memory.
    pub room: OwnedSemaphorePermit,
}

impl Pending {
    /// The game's id.
    pub fn id(&self) -> Id {
        self.checked.id
    }
}
