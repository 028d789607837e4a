//! The answer to a request: its forms, how it is put together, and where it is sent.

use bytes::Bytes;
use half::f16;
use parking_lot::Mutex;
use proto::{columns::Offsets, v1::EvaluateReply};
use tokio::sync::{mpsc, oneshot};

use super::request::Wants;
use crate::requests::{memory::MemoryCharge, refusal::Refusal};

/// Policies of all positions of a request, in the form that the client wants.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponsePolicy {
    /// Priors of the legal actions in half precision, see [`Wants::HalfPriors`].
    HalfPriors(Bytes),
    /// Priors of the legal actions of all positions, back to back.
    Priors(Vec<f32>),
    /// Logits of all actions, `[positions][actions]`.
    Logits(Vec<f32>),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationResponse {
    /// Version of the model that answered.
    pub version: String,
    /// Value of each position in [-1, 1], from the point of view of the player to act.
    pub values: Vec<f32>,
    /// Policies of all positions.
    pub policy: ResponsePolicy,
}

impl EvaluationResponse {
    /// Returns the message of `minuet.v1.Evaluator`.
    pub fn into_reply(self, id: u64) -> EvaluateReply {
        EvaluateReply {
            id,
            version: self.version,
            values: self.values,
            priors: match self.policy {
                ResponsePolicy::HalfPriors(priors) => priors,
                // This service always wants half precision. The other forms are encoded for completeness.
                ResponsePolicy::Priors(priors) | ResponsePolicy::Logits(priors) => {
                    proto::priors::encode(&priors)
                }
            },
            error: None,
        }
    }
}

/// Answer to a request, or the reason why there is none.
pub type EvaluationResult = Result<EvaluationResponse, Refusal>;

/// An answer on its way to a stream.
#[derive(Debug)]
pub struct StreamReply {
    /// Id of the request.
    pub id: u64,
    /// The answer or the refusal.
    pub answer: EvaluationResult,
    /// Memory that is charged until the answer has been sent.
    pub charge: Option<MemoryCharge>,
}

/// Destination of an answer.
#[derive(Debug)]
pub enum ReplyTo {
    /// A stream: id of the request, channel of the stream, and the charged memory.
    Stream(
        u64,
        mpsc::UnboundedSender<StreamReply>,
        Mutex<Option<MemoryCharge>>,
    ),
    /// A unary call.
    Call(Mutex<Option<oneshot::Sender<EvaluationResult>>>),
}

impl ReplyTo {
    /// Returns the destination of request `id` of a stream, with its charged memory.
    pub fn stream(id: u64, sender: mpsc::UnboundedSender<StreamReply>, charge: Option<MemoryCharge>) -> Self {
        Self::Stream(id, sender, Mutex::new(charge))
    }

    /// Returns the destination of a unary call.
    pub fn call(sender: oneshot::Sender<EvaluationResult>) -> Self {
        Self::Call(Mutex::new(Some(sender)))
    }

    /// True if nobody waits for the answer any more.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Stream(_, sender, _) => sender.is_closed(),
            Self::Call(sender) => sender.lock().as_ref().is_none_or(oneshot::Sender::is_closed),
        }
    }

    /// Sends the answer. Does nothing if the client is gone.
    pub(crate) fn send(&self, answer: EvaluationResult) {
        match self {
            Self::Stream(id, sender, charge) => {
                let charge = charge.lock().take();
                drop(sender.send(StreamReply {
                    id: *id,
                    answer,
                    charge,
                }));
            }
            Self::Call(sender) => {
                if let Some(sender) = sender.lock().take() {
                    drop(sender.send(answer));
                }
            }
        }
    }
}

/// A response of which some positions are still to be computed.
#[derive(Debug)]
pub(crate) struct ResponseBuilder {
    values: Vec<f32>,
    /// Half-precision priors, little-endian.
    half_priors: Vec<u8>,
    /// Priors or logits in f32.
    numbers: Vec<f32>,
    /// Number of positions that are still to be computed.
    pub(crate) left: usize,
    /// True after the answer or an error was sent.
    pub(crate) is_over: bool,
}

impl ResponseBuilder {
    /// Returns an empty response for `positions` positions that have `legal` legal actions together.
    pub(crate) fn new(wants: Wants, positions: usize, legal: usize, actions: usize) -> Self {
        let (half_priors, numbers) = match wants {
            Wants::HalfPriors => (2 * legal, 0),
            Wants::Priors => (0, legal),
            Wants::Logits => (0, positions * actions),
        };
        Self {
            values: vec![0.0; positions],
            half_priors: vec![0; half_priors],
            numbers: vec![0.0; numbers],
            left: positions,
            is_over: false,
        }
    }

    /// Writes the value and the policy of one position. `legal` holds the offsets of the legal actions. `policy` holds priors
    /// of the legal actions, or logits of all actions if the client wants those.
    pub(crate) fn put(&mut self, wants: Wants, legal: &Offsets, position: usize, value: f32, policy: &[f32]) {
        let start = legal.start(position);
        if let Some(place) = self.values.get_mut(position) {
            // Rounding in the model must not move a value out of its range.
            *place = value.clamp(-1.0, 1.0);
        }
        match wants {
            Wants::HalfPriors => {
                let places = self.half_priors.get_mut(2 * start..).unwrap_or_default();
                for (place, &prior) in places.chunks_exact_mut(2).zip(policy) {
                    place.copy_from_slice(&f16::from_f32(prior).to_le_bytes());
                }
            }
            Wants::Priors | Wants::Logits => {
                let start = match wants {
                    Wants::Logits => position * policy.len(),
                    _ => start,
                };
                let places = self.numbers.get_mut(start..start + policy.len());
                places.unwrap_or_default().copy_from_slice(policy);
            }
        }
    }

    /// Takes the complete response, answered by the model `version`.
    pub(crate) fn finish(&mut self, wants: Wants, version: &str) -> EvaluationResponse {
        self.is_over = true;
        EvaluationResponse {
            version: version.to_owned(),
            values: std::mem::take(&mut self.values),
            policy: match wants {
                Wants::HalfPriors => ResponsePolicy::HalfPriors(std::mem::take(&mut self.half_priors).into()),
                Wants::Priors => ResponsePolicy::Priors(std::mem::take(&mut self.numbers)),
                Wants::Logits => ResponsePolicy::Logits(std::mem::take(&mut self.numbers)),
            },
        }
    }
}
