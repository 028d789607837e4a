//! What a request asks, and who asks it, whatever protocol it came by.

use proto::v1::EvaluateRequest;
use service::{listener::Peer, telemetry::steps::Cause};
use tokio::time::Instant;

/// Whose turn it is: batches are shared out among clients, of which every connection is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Whose turn it is.
    pub client: ClientId,
    /// The call that the request came by, where its spans are collected.
    pub cause: Option<Cause>,
    /// The connection that it came by, where that is known.
    pub peer: Option<Peer>,
}

impl From<ClientId> for Caller {
    fn from(client: ClientId) -> Self {
        Self {
            client,
            cause: None,
            peer: None,
        }
    }
}

/// Who is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// Somebody waits for the answer.
    Play,
    /// Only throughput counts.
    #[default]
    SelfPlay,
}

/// What is wanted of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wants {
    /// Priors of the legal actions in half precision, as [`proto::priors`] has them.
    #[default]
    HalfPriors,
    /// Priors of the legal actions.
    Priors,
    /// The logits of all actions; the request names no legal ones.
    Logits,
}

/// What a request asks, whatever protocol it came by. The fields are those of [`EvaluateRequest`].
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The rows of all positions, back to back.
    pub indices: Vec<u32>,
    /// Length of each row; empty: the model's.
    pub row_lengths: Vec<u32>,
    /// Policy indices of the legal actions of all positions, back to back.
    pub legal_actions: Vec<u32>,
    /// Number of legal actions of each position. Its length is the number of positions.
    pub legal_counts: Vec<u32>,
    /// What is wanted of the policy.
    pub wants: Wants,
    /// Who is served first.
    pub priority: Priority,
    /// After this the answer is of no use.
    pub deadline: Option<Instant>,
}

impl Asked {
    /// What the request and its answer take, in bytes, where a model has so many `actions`. What does not add up is not
    /// looked at: such a request is refused.
    pub fn bytes(&self, actions: usize) -> usize {
        let (positions, legal) = (self.legal_counts.len(), self.legal_actions.len());
        let policy = match self.wants {
            Wants::HalfPriors => 2 * legal,
            Wants::Priors => size_of::<f32>() * legal,
            Wants::Logits => positions.saturating_mul(size_of::<f32>() * actions),
        };
        let given = self.indices.len() + self.row_lengths.len() + legal + positions;
        policy.saturating_add(size_of::<f32>() * positions + size_of::<u32>() * given)
    }

    /// Ends at `deadline` if that is earlier.
    pub fn end_by(&mut self, deadline: Option<Instant>) {
        self.deadline = match (self.deadline, deadline) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
    }
}

impl From<EvaluateRequest> for Asked {
    fn from(request: EvaluateRequest) -> Self {
        let timeout = std::time::Duration::from_millis(request.timeout_ms.into());
        Self {
            priority: match request.priority() {
                proto::v1::Priority::Play => Priority::Play,
                proto::v1::Priority::Unspecified => Priority::SelfPlay,
            },
            indices: request.indices,
            row_lengths: request.row_lengths,
            legal_actions: request.legal_actions,
            legal_counts: request.legal_counts,
            wants: Wants::HalfPriors,
            deadline: (!timeout.is_zero()).then(|| Instant::now() + timeout),
        }
    }
}
