//! A game on its way into the store, and what its sender is told.

use bytes::Bytes;
use proto::v1::AppendAck;
use tokio::sync::OwnedSemaphorePermit;

use crate::{log::frame::Id, record::validate::Checked};

/// What became of a game.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is durable.
    Stored,
    /// It was durable before.
    Duplicate,
    /// It was not taken; sending it again may help if `retry`.
    Refused {
        /// Why.
        reason: String,
        /// Whether the reason may pass.
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
    /// What the check found.
    pub checked: Checked,
    /// The packed game.
    pub record: Vec<u8>,
    /// Tells the sender.
    pub reply: Reply,
    /// Its share of the queue's memory.
    pub room: OwnedSemaphorePermit,
}

impl Pending {
    /// The game's id.
    pub fn id(&self) -> Id {
        self.checked.id
    }
}
