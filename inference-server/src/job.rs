//! One request on its way through the server.

use std::sync::Arc;

use parking_lot::Mutex;
use proto::v1::{EvaluateReply, EvaluateRequest};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{model::Model, refusal::Refusal};

/// Whose turn it is: batches are shared out among clients. A stream is a client; so is a connection with its unary calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// What becomes of a request.
pub type Answer = Result<EvaluateReply, Refusal>;

/// Where an answer goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// A stream; the answer carries the request's id.
    Stream(mpsc::UnboundedSender<(u64, Answer)>),
    /// One call.
    Call(Mutex<Option<oneshot::Sender<Answer>>>),
}

impl ReplyTo {
    /// For one call.
    pub fn call(sender: oneshot::Sender<Answer>) -> Self {
        Self::Call(Mutex::new(Some(sender)))
    }

    fn is_gone(&self) -> bool {
        match self {
            Self::Stream(sender) => sender.is_closed(),
            Self::Call(sender) => sender.lock().as_ref().is_none_or(oneshot::Sender::is_closed),
        }
    }

    fn send(&self, id: u64, answer: Answer) {
        // Who asked may be gone: nobody is left to tell then.
        match self {
            Self::Stream(sender) => drop(sender.send((id, answer))),
            Self::Call(sender) => {
                if let Some(sender) = sender.lock().take() {
                    drop(sender.send(answer));
                }
            }
        }
    }
}

/// One validated request.
#[derive(Debug)]
pub struct Job {
    /// Who asked.
    pub client: ClientId,
    /// The version that must answer; `None`: whichever is served when its turn comes.
    pub exact: Option<Arc<Model>>,
    /// When it was queued.
    pub queued: Instant,
    request: EvaluateRequest,
    row_len: usize,
    reply_to: ReplyTo,
    answer: Mutex<Partial>,
}

/// The answer as far as it is computed. A job larger than a batch is computed in pieces, one after the other.
#[derive(Debug, Default)]
struct Partial {
    values: Vec<f32>,
    priors: Vec<f32>,
    is_over: bool,
}

/// Some positions of a job: all of them, unless the job is larger than a batch.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The job.
    pub job: Arc<Job>,
    /// The first position.
    pub first: usize,
    /// How many.
    pub count: usize,
}

impl Job {
    /// A request that [`crate::validate::check`] has accepted, of rows of `row_len`.
    pub fn new(
        client: ClientId,
        exact: Option<Arc<Model>>,
        request: EvaluateRequest,
        row_len: usize,
        reply_to: ReplyTo,
    ) -> Self {
        Self {
            client,
            exact,
            queued: Instant::now(),
            request,
            row_len,
            reply_to,
            answer: Mutex::default(),
        }
    }

    /// Its number of positions.
    pub fn positions(&self) -> usize {
        self.request.legal_counts.len()
    }

    /// Whether nobody waits for its answer any more, because who asked is gone or it was answered with an error.
    pub fn is_over(&self) -> bool {
        self.reply_to.is_gone() || self.answer.lock().is_over
    }

    /// Answers with an error. Whatever else comes of the job is dropped.
    pub fn refuse(&self, refusal: Refusal) {
        let mut partial = self.answer.lock();
        if !partial.is_over {
            partial.is_over = true;
            self.reply_to.send(self.request.id, Err(refusal));
        }
    }

    /// Adds what was computed for its next positions, and answers if these were the last.
    /// Returns whether it was answered.
    pub fn add(&self, version: &str, values: &[f32], priors: &[f32]) -> bool {
        let mut partial = self.answer.lock();
        if partial.is_over {
            return false;
        }
        // A value cannot leave its range, whatever precision and activation the model has.
        let values = values.iter().map(|value| value.clamp(-1.0, 1.0));
        let is_whole = partial.values.is_empty() && values.len() == self.positions();
        let (values, priors) = if is_whole {
            (values.collect(), proto::priors::encode(priors))
        } else {
            partial.values.extend(values);
            partial.priors.extend_from_slice(priors);
            if partial.values.len() < self.positions() {
                return false;
            }
            (
                std::mem::take(&mut partial.values),
                proto::priors::encode(&std::mem::take(&mut partial.priors)),
            )
        };
        partial.is_over = true;
        let reply = EvaluateReply {
            id: self.request.id,
            version: version.to_owned(),
            values,
            priors,
            error: None,
        };
        self.reply_to.send(self.request.id, Ok(reply));
        true
    }
}

impl Piece {
    /// Its rows, back to back.
    pub fn rows(&self) -> &[u32] {
        let row_len = self.job.row_len;
        let range = self.first * row_len..(self.first + self.count) * row_len;
        self.job.request.indices.get(range).unwrap_or_default()
    }

    /// The legal actions of each of its positions.
    pub fn legal(&self) -> impl Iterator<Item = &[u32]> {
        let request = &self.job.request;
        let counts = |from: usize, count: usize| request.legal_counts.iter().skip(from).take(count);
        let before: usize = counts(0, self.first).map(|&count| count as usize).sum();
        let mut rest = request.legal_actions.get(before..).unwrap_or_default();
        counts(self.first, self.count).map(move |&count| {
            let (legal, others) = rest.split_at(rest.len().min(count as usize));
            rest = others;
            legal
        })
    }
}
