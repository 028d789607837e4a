//! The answer to a request: its forms, how it comes together, where it goes.

use bytes::Bytes;
use half::f16;
use parking_lot::Mutex;
use proto::v1::EvaluateReply;
use tokio::sync::{mpsc, oneshot};

use super::request::Wants;
use crate::requests::{memory::Charge, refusal::Refusal};

/// What a model says of a request's policy.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// See [`Wants::HalfPriors`].
    HalfPriors(Bytes),
    /// Priors of the legal actions of all positions, back to back.
    Priors(Vec<f32>),
    /// `[positions][actions]`
    Logits(Vec<f32>),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The model that answered.
    pub version: String,
    /// One for each position, in [-1, 1], from the point of view of the player to act.
    pub values: Vec<f32>,
    /// As it was wanted.
    pub policy: Policy,
}

impl Evaluation {
    /// The message that says so.
    pub fn into_reply(self, id: u64) -> EvaluateReply {
        EvaluateReply {
            id,
            version: self.version,
            values: self.values,
            priors: match self.policy {
                Policy::HalfPriors(priors) => priors,
                // Requests of that service want the other form.
                Policy::Priors(priors) | Policy::Logits(priors) => proto::priors::encode(&priors),
            },
            error: None,
        }
    }
}

/// What becomes of a request.
pub type Answer = Result<Evaluation, Refusal>;

/// An answer on its way to its stream.
#[derive(Debug)]
pub struct Reply {
    /// The request's id.
    pub id: u64,
    /// The answer.
    pub answer: Answer,
    /// What it is charged with until it has been sent.
    pub charge: Option<Charge>,
}

/// Where an answer goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// A stream; the answer carries the request's id, and what it is charged with.
    Stream(u64, mpsc::UnboundedSender<Reply>, Mutex<Option<Charge>>),
    /// One call.
    Call(Mutex<Option<oneshot::Sender<Answer>>>),
}

impl ReplyTo {
    /// For a stream's request `id`, charged with `charge`.
    pub fn stream(id: u64, sender: mpsc::UnboundedSender<Reply>, charge: Option<Charge>) -> Self {
        Self::Stream(id, sender, Mutex::new(charge))
    }

    /// For one call.
    pub fn call(sender: oneshot::Sender<Answer>) -> Self {
        Self::Call(Mutex::new(Some(sender)))
    }

    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Stream(_, sender, _) => sender.is_closed(),
            Self::Call(sender) => sender.lock().as_ref().is_none_or(oneshot::Sender::is_closed),
        }
    }

    pub(crate) fn send(&self, answer: Answer) {
        // Who asked may be gone: nobody is left to tell then.
        match self {
            Self::Stream(id, sender, charge) => {
                let charge = charge.lock().take();
                drop(sender.send(Reply {
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

/// The answer as far as it is known.
#[derive(Debug)]
pub(crate) struct Partial {
    values: Vec<f32>,
    policy: Vec<u8>,
    numbers: Vec<f32>,
    /// Positions that are not known.
    pub(crate) left: usize,
    /// Whether it was answered, in whatever way.
    pub(crate) is_over: bool,
}

impl Partial {
    /// Nothing is known of so many positions, which have so many legal actions together.
    pub(crate) fn new(wants: Wants, positions: usize, legal: usize, actions: usize) -> Self {
        let (policy, numbers) = match wants {
            Wants::HalfPriors => (2 * legal, 0),
            Wants::Priors => (0, legal),
            Wants::Logits => (0, positions * actions),
        };
        Self {
            values: vec![0.0; positions],
            policy: vec![0; policy],
            numbers: vec![0.0; numbers],
            left: positions,
            is_over: false,
        }
    }

    /// Keeps what is known of a position. `policy` is what is wanted of it.
    pub(crate) fn put(
        &mut self,
        wants: Wants,
        legal_starts: &[u32],
        position: usize,
        value: f32,
        policy: &[f32],
    ) {
        let start = legal_starts.get(position).copied().unwrap_or_default() as usize;
        if let Some(place) = self.values.get_mut(position) {
            // A value cannot leave its range, whatever precision and activation the model has.
            *place = value.clamp(-1.0, 1.0);
        }
        match wants {
            Wants::HalfPriors => {
                let places = self.policy.get_mut(2 * start..).unwrap_or_default();
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

    /// The whole answer, by the model `version`.
    pub(crate) fn evaluation(&mut self, wants: Wants, version: &str) -> Evaluation {
        self.is_over = true;
        Evaluation {
            version: version.to_owned(),
            values: std::mem::take(&mut self.values),
            policy: match wants {
                Wants::HalfPriors => Policy::HalfPriors(std::mem::take(&mut self.policy).into()),
                Wants::Priors => Policy::Priors(std::mem::take(&mut self.numbers)),
                Wants::Logits => Policy::Logits(std::mem::take(&mut self.numbers)),
            },
        }
    }
}
