//! A request in the form that all protocols share, the client that sent it, and its deadline.

use std::time::Duration;

use proto::v1::EvaluateRequest;
use service::{listener::Peer, telemetry::steps::Cause};
use tokio::time::Instant;
use tonic::Request;

/// gRPC's header with the deadline of a call: at most eight digits and a unit.
const HEADER: &str = "grpc-timeout";
const MOST_DIGITS: usize = 8;
/// Time by which a call is answered before its deadline. At the deadline the transport, which watches the same header, ends the
/// call with CANCELLED, and the runtime's timers tick in milliseconds.
const AHEAD: Duration = Duration::from_millis(2);

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

/// Policy that a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wants {
    /// Priors of the legal actions.
    #[default]
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
    /// Policy in the answer.
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
        let timeout = Duration::from_millis(request.timeout_ms.into());
        Self {
            priority: match request.priority() {
                proto::v1::Priority::Play => Priority::Play,
                proto::v1::Priority::Unspecified => Priority::SelfPlay,
            },
            indices: request.indices,
            row_lengths: request.row_lengths,
            legal_actions: request.legal_actions,
            legal_counts: request.legal_counts,
            wants: Wants::Priors,
            deadline: (!timeout.is_zero()).then(|| Instant::now() + timeout),
        }
    }
}

/// Returns the time by which a call that has just arrived must be answered; `None` if the client sets no deadline.
pub(crate) fn deadline_of<T>(request: &Request<T>) -> Option<Instant> {
    let text = request.metadata().get(HEADER)?.to_str().ok()?;
    let time = read_timeout(text)?;
    Instant::now().checked_add(time.saturating_sub(AHEAD).max(time / 2))
}

fn read_timeout(text: &str) -> Option<Duration> {
    let unit = text.char_indices().next_back()?;
    let digits = text.get(..unit.0)?;
    if digits.len() > MOST_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit.1 {
        'H' => Duration::from_secs(3600 * number),
        'M' => Duration::from_secs(60 * number),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_and_nothing_else() {
        let says = |text: &str| read_timeout(text).map(|time| time.as_nanos());
        for (text, nanos) in [
            ("2H", 7_200_000_000_000),
            ("3M", 180_000_000_000),
            ("4S", 4_000_000_000),
            ("50m", 50_000_000),
            ("60u", 60_000),
            ("70n", 70),
            ("99999999H", 359_999_996_400_000_000_000),
        ] {
            assert_eq!(says(text), Some(nanos), "{text}");
        }
        for text in "|S|1|-1S|+1S|1.5S|100000000n|1s|1µ|1 S".split('|') {
            assert_eq!(says(text), None, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_is_answered_before_the_transport_gives_up_on_it() {
        let after = |text: &'static str| {
            let mut request = Request::new(());
            request.metadata_mut().insert(HEADER, text.parse().unwrap());
            deadline_of(&request).map(|deadline| (deadline - Instant::now()).as_micros())
        };
        assert_eq!(after("1S"), Some(998_000));
        assert_eq!(after("2m"), Some(1_000));
        assert_eq!(after("soon"), None);
        assert_eq!(deadline_of(&Request::new(())), None);
    }
}
