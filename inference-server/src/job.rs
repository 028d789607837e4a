//! One request on its way through the server.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use half::f16;
use parking_lot::Mutex;
use proto::v1::{EvaluateReply, EvaluateRequest};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{model::Model, models::Named, refusal::Refusal, slot::Slot};

/// Whose turn it is: batches are shared out among clients, of which every connection is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

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

/// Where an answer goes.
#[derive(Debug)]
pub enum ReplyTo {
    /// A stream; the answer carries the request's id.
    Stream(u64, mpsc::UnboundedSender<(u64, Answer)>),
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
            Self::Stream(_, sender) => sender.is_closed(),
            Self::Call(sender) => sender.lock().as_ref().is_none_or(oneshot::Sender::is_closed),
        }
    }

    pub(crate) fn send(&self, answer: Answer) {
        // Who asked may be gone: nobody is left to tell then.
        match self {
            Self::Stream(id, sender) => drop(sender.send((*id, answer))),
            Self::Call(sender) => {
                if let Some(sender) = sender.lock().take() {
                    drop(sender.send(answer));
                }
            }
        }
    }
}

/// Whether it is still worth computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is.
    Wanted,
    /// Nobody waits for it any more, because who asked is gone or it was answered with an error.
    Over,
    /// Its deadline has passed, and it was answered so.
    Late,
}

/// One validated request.
#[derive(Debug)]
pub struct Job {
    /// Who asked.
    pub client: ClientId,
    /// When it was queued.
    pub queued: Instant,
    named: Named,
    asked: Asked,
    starts: Starts,
    /// The positions to be computed, where others are known already; empty: all.
    todo: Vec<u32>,
    /// Hashes of all positions' questions; empty where there is no cache.
    hashes: Vec<u64>,
    reply_to: ReplyTo,
    answer: Mutex<Partial>,
}

/// The answer as far as it is known.
#[derive(Debug, Default)]
struct Partial {
    values: Vec<f32>,
    policy: Vec<u8>,
    numbers: Vec<f32>,
    /// Positions that are not known.
    left: usize,
    is_over: bool,
}

/// Some positions of a job: all that are to be computed, unless the job is larger than a batch.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The job.
    pub job: Arc<Job>,
    /// The first of the positions to be computed.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// A request that [`crate::validate::check`] has accepted, some of whose positions may be known.
#[derive(Debug)]
pub struct Draft {
    named: Named,
    asked: Asked,
    starts: Starts,
    known: Vec<bool>,
    hashes: Vec<u64>,
    answer: Partial,
}

impl Draft {
    /// Nothing is known.
    pub fn new(named: Named, asked: Asked) -> Self {
        let positions = asked.legal_counts.len();
        let starts = Starts::of(&asked, named.model.info.layout.row_len());
        let (policy, numbers) = match asked.wants {
            Wants::HalfPriors => (2 * asked.legal_actions.len(), 0),
            Wants::Priors => (0, asked.legal_actions.len()),
            Wants::Logits => (0, positions * named.model.info.layout.actions as usize),
        };
        Self {
            answer: Partial {
                values: vec![0.0; positions],
                policy: vec![0; policy],
                numbers: vec![0.0; numbers],
                left: positions,
                is_over: false,
            },
            named,
            asked,
            starts,
            known: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// The model that its rows were checked against.
    pub fn model(&self) -> &Arc<Model> {
        &self.named.model
    }

    /// The name it asked for, where that moves on.
    pub fn slot(&self) -> Option<&Slot> {
        self.named.slot.as_deref()
    }

    /// Its number of positions.
    pub fn positions(&self) -> usize {
        self.asked.legal_counts.len()
    }

    /// What is wanted of the policy.
    pub fn wants(&self) -> Wants {
        self.asked.wants
    }

    /// A position's row and its legal actions.
    pub fn question(&self, position: usize) -> (&[u32], &[u32]) {
        (
            self.starts.row(&self.asked, position),
            self.starts.legal(&self.asked, position),
        )
    }

    /// A position need not be computed. `priors` are those of its legal actions.
    pub fn know(&mut self, position: usize, value: f32, priors: &[f32]) {
        if self.known.is_empty() {
            self.known = vec![false; self.positions()];
        }
        let Some(known) = self.known.get_mut(position).filter(|known| !**known) else {
            return;
        };
        *known = true;
        self.answer.left -= 1;
        self.answer
            .put(self.asked.wants, &self.starts.legal, position, value, priors);
    }

    /// The hashes of all positions' questions.
    pub fn set_hashes(&mut self, hashes: Vec<u64>) {
        self.hashes = hashes;
    }

    /// Whether nothing is left to be computed.
    pub fn is_known(&self) -> bool {
        self.answer.left == 0
    }

    /// The answer, where nothing is left to be computed.
    pub fn into_answer(mut self) -> Evaluation {
        self.answer
            .evaluation(self.asked.wants, &self.named.model.info.version)
    }

    /// The job that computes the rest. Where some positions are known, the same model must answer the others.
    pub fn into_job(mut self, client: ClientId, reply_to: ReplyTo) -> Job {
        if !self.known.is_empty() {
            self.named.slot = None;
        }
        let unknown = self.known.iter().enumerate().filter(|(_, known)| !**known);
        Job {
            client,
            queued: Instant::now(),
            todo: unknown.map(|(position, _)| position as u32).collect(),
            named: self.named,
            asked: self.asked,
            starts: self.starts,
            hashes: self.hashes,
            reply_to,
            answer: Mutex::new(self.answer),
        }
    }
}

impl Partial {
    fn put(&mut self, wants: Wants, legal_starts: &[u32], position: usize, value: f32, policy: &[f32]) {
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

    fn evaluation(&mut self, wants: Wants, version: &str) -> Evaluation {
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

impl Job {
    /// Positions to be computed.
    pub fn positions(&self) -> usize {
        if self.todo.is_empty() {
            self.asked.legal_counts.len()
        } else {
            self.todo.len()
        }
    }

    /// Who is served first.
    pub fn priority(&self) -> Priority {
        self.asked.priority
    }

    /// What is wanted of the policy.
    pub fn wants(&self) -> Wants {
        self.asked.wants
    }

    /// The model that is to answer, as of now: what the name points at that was asked for. The one that the rows were
    /// checked against, where the name has been unloaded or has come to mean other rows.
    pub fn model(&self) -> Arc<Model> {
        let checked = &self.named.model;
        let Some(current) = self.named.slot.as_deref().and_then(Slot::current) else {
            return checked.clone();
        };
        if Arc::ptr_eq(&current, checked) || current.info.layout == checked.info.layout {
            current
        } else {
            checked.clone()
        }
    }

    /// Whether it is worth computing at `now`. What is late is answered.
    pub fn state(&self, now: Instant) -> State {
        if self.reply_to.is_gone() || self.answer.lock().is_over {
            return State::Over;
        }
        if self.asked.deadline.is_some_and(|deadline| deadline <= now) {
            self.refuse(Refusal::Late);
            return State::Late;
        }
        State::Wanted
    }

    /// Answers with an error. Whatever else comes of the job is dropped.
    pub fn refuse(&self, refusal: Refusal) {
        let mut partial = self.answer.lock();
        if !partial.is_over {
            partial.is_over = true;
            self.reply_to.send(Err(refusal));
        }
    }
}

impl Piece {
    /// The positions, by their numbers in the request.
    pub fn positions(&self) -> impl Iterator<Item = usize> {
        let todo = &self.job.todo;
        (self.first..self.first + self.count)
            .map(move |number| todo.get(number).map_or(number, |&position| position as usize))
    }

    /// A position's row.
    pub fn row(&self, position: usize) -> &[u32] {
        self.job.starts.row(&self.job.asked, position)
    }

    /// A position's legal actions.
    pub fn legal(&self, position: usize) -> &[u32] {
        self.job.starts.legal(&self.job.asked, position)
    }

    /// The hash of a position's question, where there is a cache.
    pub fn hash(&self, position: usize) -> Option<u64> {
        self.job.hashes.get(position).copied()
    }

    /// Takes what was computed: for each position its value, and what was wanted of its policy, the same number of
    /// numbers as [`Piece::legal`] (or as there are actions), back to back. Answers if nothing is left.
    /// Returns the number of all the request's positions if it was answered.
    pub fn answer(&self, version: &str, values: &[f32], mut policy: &[f32], actions: usize) -> Option<usize> {
        let job = &*self.job;
        let mut partial = job.answer.lock();
        if partial.is_over {
            return None;
        }
        for (position, &value) in self.positions().zip(values) {
            let count = match job.asked.wants {
                Wants::Logits => actions,
                _ => self.legal(position).len(),
            };
            let (own, others) = policy.split_at(policy.len().min(count));
            policy = others;
            partial.put(job.asked.wants, &job.starts.legal, position, value, own);
        }
        partial.left = partial.left.saturating_sub(self.count);
        if partial.left > 0 {
            return None;
        }
        let evaluation = partial.evaluation(job.asked.wants, version);
        job.reply_to.send(Ok(evaluation));
        Some(job.asked.legal_counts.len())
    }
}

/// Where each position's row and legal actions begin, and where the last ones end.
#[derive(Debug)]
struct Starts {
    rows: Rows,
    legal: Vec<u32>,
}

#[derive(Debug)]
enum Rows {
    /// All of one length.
    Equal(usize),
    /// Where each begins.
    Varied(Vec<u32>),
}

impl Starts {
    fn of(asked: &Asked, row_len: Option<usize>) -> Self {
        Self {
            rows: match row_len {
                Some(row_len) => Rows::Equal(row_len),
                None => Rows::Varied(sums(&asked.row_lengths)),
            },
            legal: sums(&asked.legal_counts),
        }
    }

    fn row<'a>(&self, asked: &'a Asked, position: usize) -> &'a [u32] {
        let range = match &self.rows {
            Rows::Equal(row_len) => position * row_len..(position + 1) * row_len,
            Rows::Varied(starts) => between(starts, position),
        };
        asked.indices.get(range).unwrap_or_default()
    }

    fn legal<'a>(&self, asked: &'a Asked, position: usize) -> &'a [u32] {
        let range = between(&self.legal, position);
        asked.legal_actions.get(range).unwrap_or_default()
    }
}

/// The sum of all counts before each, and that of all.
fn sums(counts: &[u32]) -> Vec<u32> {
    let mut sums = Vec::with_capacity(counts.len() + 1);
    let mut sum = 0;
    sums.push(0);
    for &count in counts {
        sum += count;
        sums.push(sum);
    }
    sums
}

fn between(starts: &[u32], position: usize) -> Range<usize> {
    let at = |place: usize| starts.get(place).copied().unwrap_or_default() as usize;
    at(position)..at(position + 1)
}
