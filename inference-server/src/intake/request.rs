//! A request in the form that all protocols share, and the client that sent it.

use proto::v1::EvaluateRequest;
use service::{listener::Peer, telemetry::steps::Cause};
use tokio::time::Instant;

/// A client. Each connection is one, and batches are shared fairly between clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// The client of a call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The client, for fairness between clients.
    pub client: ClientId,
    /// Trace of the call, if spans are collected.
    pub cause: Option<Cause>,
    /// Connection of the call, if it is known.
    pub peer: Option<Peer>,
}

/// Priority of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Priority {
    /// A person or a match waits for the answer.
    Play,
    /// Self-play: only throughput counts.
    #[default]
    SelfPlay,
}

/// Form of the policy that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wants {
    /// Priors of the legal actions in half precision, encoded by [`proto::priors`].
    #[default]
    HalfPriors,
    /// Priors of the legal actions, in f32.
    Priors,
    /// Logits of all actions. The request has no legal actions.
    Logits,
}

/// A request for the evaluation of positions. The fields are those of [`EvaluateRequest`].
#[derive(Clone, Debug, Default)]
pub struct EvaluationRequest {
    /// The rows of all positions, back to back.
    pub indices: Vec<u32>,
    /// Length of each row. Empty if all rows have the length of the model's layout.
    pub row_lengths: Vec<u32>,
    /// Policy indices of the legal actions of all positions, back to back.
    pub legal_actions: Vec<u32>,
    /// Number of legal actions of each position. Its length is the number of positions.
    pub legal_counts: Vec<u32>,
    /// Form of the policy in the answer.
    pub wants: Wants,
    /// Priority in the queue.
    pub priority: Priority,
    /// Time after which the client no longer waits.
    pub deadline: Option<Instant>,
}

impl EvaluationRequest {
    /// Returns the memory of the request and its answer, in bytes, for a model with `actions` actions. Sums that do not
    /// fit are not checked here, because validation refuses such a request.
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

    /// Moves the deadline to `deadline` if that is earlier.
    pub fn end_by(&mut self, deadline: Option<Instant>) {
        self.deadline = match (self.deadline, deadline) {
            (Some(own), Some(other)) => Some(own.min(other)),
            (own, other) => own.or(other),
        };
    }
}

impl From<EvaluateRequest> for EvaluationRequest {
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
