//! A validated request on its way through the cache, the queue and the device, until its answer is sent.

use std::sync::Arc;

use games::MoverValue;
use half::f16;
use network::{
    cache::{Cache, CacheKey, VersionId},
    model::Model,
};
use parking_lot::Mutex;
use proto::{
    columns::{Lengths, Offsets},
    v1::EvaluateReply,
};
use service::telemetry::steps::Cause;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{
    intake::{
        memory::MemoryCharge,
        refusal::Refusal,
        request::{Caller, ClientId, EvaluationRequest, Priority, Wants},
    },
    models::table::{ModelSlot, ResolvedModel},
};

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Version of the model that answered.
    pub version: String,
    /// Value of each position in [-1, 1], from the point of view of the player to act.
    pub values: Vec<f32>,
    /// Priors in the form of [`Wants::HalfPriors`]; empty for other forms.
    pub half_priors: Vec<u8>,
    /// Priors of the legal actions of all positions, or logits `[positions][actions]`; empty for [`Wants::HalfPriors`].
    pub numbers: Vec<f32>,
}

impl Evaluation {
    /// Returns the message of `minuet.v1.Evaluator`, for a request that wants [`Wants::HalfPriors`].
    pub fn into_reply(self, id: u64) -> EvaluateReply {
        EvaluateReply {
            id,
            version: self.version,
            values: self.values,
            priors: self.half_priors.into(),
            error: None,
        }
    }
}

/// Answer to a request, or the reason why there is none.
pub type EvaluationResult = Result<Evaluation, Refusal>;

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
    fn is_gone(&self) -> bool {
        match self {
            Self::Stream(_, sender, _) => sender.is_closed(),
            Self::Call(sender) => sender.lock().as_ref().is_none_or(oneshot::Sender::is_closed),
        }
    }

    /// Sends the answer. Does nothing if the client is gone.
    pub(crate) fn send(&self, answer: EvaluationResult) {
        match self {
            Self::Stream(id, sender, charge) => {
                let (id, charge) = (*id, charge.lock().take());
                drop(sender.send(StreamReply { id, answer, charge }));
            }
            Self::Call(sender) => {
                if let Some(sender) = sender.lock().take() {
                    drop(sender.send(answer));
                }
            }
        }
    }
}

/// An answer of which some positions are still to be computed.
#[derive(Debug)]
struct Answering {
    evaluation: Evaluation,
    /// Number of positions that are still to be computed.
    left: usize,
    /// True after the answer or an error was sent.
    is_over: bool,
}

impl Answering {
    /// Makes an answer for `positions` positions that have `legal` legal actions together.
    fn new(wants: Wants, positions: usize, legal: usize, actions: usize) -> Self {
        let (half_priors, numbers) = match wants {
            Wants::HalfPriors => (2 * legal, 0),
            Wants::Priors => (0, legal),
            Wants::Logits => (0, positions * actions),
        };
        Self {
            evaluation: Evaluation {
                version: String::new(),
                values: vec![0.0; positions],
                half_priors: vec![0; half_priors],
                numbers: vec![0.0; numbers],
            },
            left: positions,
            is_over: false,
        }
    }

    /// Writes the value and the policy of one position. `legal` holds the offsets of the legal actions. `policy` holds priors
    /// of the legal actions, or logits of all actions if the client wants those.
    fn put(&mut self, wants: Wants, legal: &Offsets, position: usize, value: f32, policy: &[f32]) {
        let Evaluation {
            values,
            half_priors,
            numbers,
            ..
        } = &mut self.evaluation;
        if let Some(place) = values.get_mut(position) {
            // Rounding in the model must not move a value out of its range.
            *place = value.clamp(-1.0, 1.0);
        }
        let start = legal.start(position);
        match wants {
            Wants::HalfPriors => {
                let places = half_priors.get_mut(2 * start..).unwrap_or_default();
                for (place, &prior) in places.chunks_exact_mut(2).zip(policy) {
                    place.copy_from_slice(&f16::from_f32(prior).to_le_bytes());
                }
            }
            Wants::Priors | Wants::Logits => {
                let start = match wants {
                    Wants::Logits => position * policy.len(),
                    _ => start,
                };
                let places = numbers.get_mut(start..start + policy.len());
                places.unwrap_or_default().copy_from_slice(policy);
            }
        }
    }

    /// Takes the complete answer of the model `version`.
    fn finish(&mut self, version: &str) -> Evaluation {
        self.is_over = true;
        self.evaluation.version = version.to_owned();
        std::mem::take(&mut self.evaluation)
    }
}

/// State of a job at the moment when a batch is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A client waits for the answer.
    Wanted,
    /// No client waits for the answer: the client is gone, or the job was answered with an error.
    Over,
    /// The deadline has passed, and the client was told so.
    Late,
}

/// A validated request. Positions that the cache knows are filled in before it is queued.
#[derive(Debug)]
pub struct Job {
    /// The client, for fairness between clients.
    pub client: ClientId,
    /// Trace of the call that brought the request, if spans are collected.
    pub cause: Option<Cause>,
    /// Time at which the job was made.
    pub queued: Instant,
    model: ResolvedModel,
    request: EvaluationRequest,
    /// Offsets of the rows.
    rows: Offsets,
    /// Offsets of the legal actions.
    legal: Offsets,
    /// Positions to compute, if the cache knew others. Empty: all positions.
    unknown: Vec<u32>,
    /// Cache hash of every position. Empty without a cache.
    hashes: Vec<u64>,
    reply_to: ReplyTo,
    answering: Mutex<Answering>,
}

/// A part of a job that goes into one batch: all positions to compute, unless the job is larger than a batch.
#[derive(Clone, Debug)]
pub struct JobSlice {
    /// The job.
    pub job: Arc<Job>,
    /// Number of the first position, counted among the positions to compute.
    pub first: usize,
    /// Number of positions.
    pub count: usize,
}

impl Job {
    /// Makes a job of a request that [`crate::intake::validate::check`] has accepted.
    pub fn new(model: ResolvedModel, request: EvaluationRequest, caller: Caller, reply_to: ReplyTo) -> Self {
        let Caller { client, cause, .. } = caller;
        let layout = &model.model.info.layout;
        let answering = Answering::new(
            request.wants,
            request.legal_counts.len(),
            request.legal_actions.len(),
            layout.actions as usize,
        );
        Self {
            client,
            cause,
            queued: Instant::now(),
            rows: Offsets::new(match layout.row_len() {
                Some(row_len) => Lengths::Fixed(row_len),
                None => Lengths::Varying(&request.row_lengths),
            }),
            legal: Offsets::new(Lengths::Varying(&request.legal_counts)),
            model,
            request,
            unknown: Vec::new(),
            hashes: Vec::new(),
            reply_to,
            answering: Mutex::new(answering),
        }
    }

    /// Fills in the positions that the cache knows, before the job is queued. Returns the numbers of hits and misses.
    ///
    /// Logits are too large to be stored, so a job that wants logits is hashed only: equal positions share a place in a batch.
    pub fn look_up(&mut self, cache: &Cache) -> (u64, u64) {
        let positions = self.request_positions();
        let mut hashes = Vec::with_capacity(positions);
        let (mut priors, mut unknown, mut hits) = (Vec::new(), Vec::new(), 0);
        let (wants, id) = (self.request.wants, self.model.model.info.id);
        for position in 0..positions {
            let (row, legal) = self.position(position);
            let key = CacheKey::new(row, legal);
            hashes.push(key.hash());
            if wants == Wants::Logits {
                continue;
            }
            priors.clear();
            if let Some(cached) = cache.find(&key, id, &mut priors) {
                if hits == 0 {
                    unknown.extend(0..position as u32);
                }
                hits += 1;
                let answering = self.answering.get_mut();
                answering.left = answering.left.saturating_sub(1);
                answering.put(wants, &self.legal, position, cached.value.get(), &priors);
            } else if hits > 0 {
                unknown.push(position as u32);
            }
        }
        (self.hashes, self.unknown) = (hashes, unknown);
        match wants {
            Wants::Logits => (0, 0),
            _ => (hits, positions as u64 - hits),
        }
    }

    /// Sends the answer if the cache knew every position. Returns the number of positions in that case.
    pub fn answer_if_complete(&mut self) -> Option<usize> {
        let answering = self.answering.get_mut();
        if answering.left > 0 {
            return None;
        }
        let evaluation = answering.finish(&self.model.model.info.version);
        self.reply_to.send(Ok(evaluation));
        Some(self.request_positions())
    }

    /// Returns the number of positions in the request.
    fn request_positions(&self) -> usize {
        self.request.legal_counts.len()
    }

    /// Returns the number of positions to compute.
    pub fn positions(&self) -> usize {
        match self.unknown.len() {
            0 => self.request_positions(),
            unknown => unknown,
        }
    }

    /// Sets the cache hashes of the positions.
    #[cfg(test)]
    pub(crate) fn set_hashes(&mut self, hashes: Vec<u64>) {
        self.hashes = hashes;
    }

    /// Returns the row and legal actions of a position of the request.
    fn position(&self, position: usize) -> (&[u32], &[u32]) {
        (
            self.rows.part(&self.request.indices, position),
            self.legal.part(&self.request.legal_actions, position),
        )
    }

    /// Returns the priority of the request.
    pub fn priority(&self) -> Priority {
        self.request.priority
    }

    /// Returns the form of the policy that the client wants.
    pub fn wants(&self) -> Wants {
        self.request.wants
    }

    /// Returns the served name that the request used, unless it named a version.
    pub fn slot(&self) -> Option<&ModelSlot> {
        self.model.slot.as_deref()
    }

    /// Returns the model that must compute the job: the one that the requested name points at now. The model that
    /// validated the rows answers instead if the layout of the name changed, or if the cache has already given a part of the
    /// answer.
    pub fn model(&self) -> Arc<Model> {
        let validated_by = &self.model.model;
        let Some(current) = self.slot().and_then(ModelSlot::current) else {
            return validated_by.clone();
        };
        let is_partly_known = !self.unknown.is_empty();
        if Arc::ptr_eq(&current, validated_by)
            || !is_partly_known && current.info.layout == validated_by.info.layout
        {
            current
        } else {
            validated_by.clone()
        }
    }

    /// Returns the state at `now`. A job whose deadline has passed is answered with [`Refusal::Late`].
    pub fn state(&self, now: Instant) -> State {
        if self.reply_to.is_gone() || self.answering.lock().is_over {
            return State::Over;
        }
        if self.request.deadline.is_some_and(|deadline| deadline <= now) {
            self.refuse(Refusal::Late);
            return State::Late;
        }
        State::Wanted
    }

    /// Answers with an error. Results that arrive later are dropped.
    pub fn refuse(&self, refusal: Refusal) {
        let mut answering = self.answering.lock();
        if !answering.is_over {
            answering.is_over = true;
            self.reply_to.send(Err(refusal));
        }
    }
}

impl JobSlice {
    /// Returns the positions of the slice, as indices into the request.
    pub fn positions(&self) -> impl Iterator<Item = usize> {
        let unknown = &self.job.unknown;
        (self.first..self.first + self.count)
            .map(move |number| unknown.get(number).map_or(number, |&position| position as usize))
    }

    /// Returns the row of a position of the request.
    pub fn row(&self, position: usize) -> &[u32] {
        self.job.rows.part(&self.job.request.indices, position)
    }

    /// Returns the legal actions of a position of the request.
    pub fn legal(&self, position: usize) -> &[u32] {
        self.job.legal.part(&self.job.request.legal_actions, position)
    }

    /// True if the positions have cache hashes.
    pub fn is_hashed(&self) -> bool {
        !self.job.hashes.is_empty()
    }

    /// Returns the cache hash of a position, if there is a cache.
    pub fn hash(&self, position: usize) -> Option<u64> {
        self.job.hashes.get(position).copied()
    }

    /// Stores the evaluation of one position by the model with this number, unless the client wants logits or the position
    /// was not looked up.
    pub fn store(&self, cache: &Cache, model: VersionId, position: usize, value: f32, priors: &[f32]) {
        if self.job.wants() == Wants::Logits {
            return;
        }
        if let Some(hash) = self.hash(position) {
            let key = CacheKey::hashed(self.row(position), self.legal(position), hash);
            cache.insert(&key, model, priors, MoverValue::new(value));
        }
    }

    /// Adds the computed values and policies of the slice's positions to the answer, and sends the answer when nothing is
    /// left to compute. `policy` holds, back to back, one number for each legal action, or `actions` logits for each
    /// position if the client wants logits. Returns the number of the request's positions if the answer was sent.
    pub fn answer(&self, version: &str, values: &[f32], mut policy: &[f32], actions: usize) -> Option<usize> {
        let job = &*self.job;
        let mut answering = job.answering.lock();
        if answering.is_over {
            return None;
        }
        for (position, &value) in self.positions().zip(values) {
            let count = match job.request.wants {
                Wants::Logits => actions,
                _ => self.legal(position).len(),
            };
            let (own, others) = policy.split_at(policy.len().min(count));
            policy = others;
            answering.put(job.request.wants, &job.legal, position, value, own);
        }
        answering.left = answering.left.saturating_sub(self.count);
        if answering.left > 0 {
            return None;
        }
        let evaluation = answering.finish(version);
        job.reply_to.send(Ok(evaluation));
        Some(job.request_positions())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{caller, model, request};

    type Replies = mpsc::UnboundedReceiver<StreamReply>;

    fn job_of(model: &Arc<Model>, request: EvaluationRequest) -> (Job, Replies) {
        let (sender, replies) = mpsc::unbounded_channel();
        let model = ResolvedModel {
            model: model.clone(),
            slot: None,
        };
        let job = Job::new(model, request, caller(1), ReplyTo::stream(7, sender, None));
        (job, replies)
    }

    fn job(model: &Arc<Model>, marks: &[u32]) -> (Job, Replies) {
        let mut request = request(marks.len(), 0);
        request.indices = marks.iter().flat_map(|&mark| [mark, mark, 1]).collect();
        job_of(model, request)
    }

    fn whole(job: Job) -> JobSlice {
        let (job, first) = (Arc::new(job), 0);
        let count = job.positions();
        JobSlice { job, first, count }
    }

    #[test]
    fn stored_positions_are_filled_in_and_the_others_are_computed() {
        let cache = Cache::new(1 << 20).unwrap();
        let (one, other) = (model("1", 8), model("2", 8));
        let (mut first, _replies) = job(&one, &[5, 6]);
        assert_eq!(first.look_up(&cache), (0, 2));
        assert_eq!(first.answer_if_complete(), None);
        let slice = whole(first);
        slice.store(&cache, one.info.id, 0, 0.5, &[0.25, 0.75]);
        slice.store(&cache, one.info.id, 1, -0.5, &[0.5, 0.5]);

        let (mut all, mut replies) = job(&one, &[6, 5, 6]);
        assert_eq!(all.look_up(&cache), (3, 0));
        assert_eq!(all.answer_if_complete(), Some(3));
        let answer = replies.try_recv().unwrap().answer.unwrap();
        assert_eq!(
            (answer.version.as_str(), answer.values.as_slice()),
            ("1", [-0.5, 0.5, -0.5].as_slice())
        );

        // Another model has no entries.
        assert_eq!(job(&other, &[5]).0.look_up(&cache), (0, 1));

        // Only the positions that the cache does not know are computed.
        let (mut part, mut replies) = job(&one, &[7, 5, 8]);
        assert_eq!(part.look_up(&cache), (1, 2));
        assert_eq!((part.answer_if_complete(), part.positions()), (None, 2));
        let slice = whole(part);
        assert_eq!(slice.positions().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(slice.answer("1", &[0.1, 0.2], &[1.0, 0.0, 0.0, 1.0], 5), Some(3));
        let answer = replies.try_recv().unwrap().answer.unwrap();
        assert_eq!(answer.values, [0.1, 0.5, 0.2]);
        let mut priors = Vec::new();
        proto::priors::decode(&answer.half_priors, 6, &mut priors).unwrap();
        assert_eq!(priors, [1.0, 0.0, 0.25, 0.75, 0.0, 1.0]);
    }

    #[test]
    fn logits_are_hashed_but_neither_stored_nor_looked_up() {
        let cache = Cache::new(1 << 20).unwrap();
        let one = model("1", 8);
        let mut request = request(2, 5);
        (request.wants, request.legal_counts) = (Wants::Logits, vec![0; 2]);
        request.legal_actions.clear();
        let (mut logits, _replies) = job_of(&one, request);
        assert_eq!(logits.look_up(&cache), (0, 0));
        let slice = whole(logits);
        assert!(slice.hash(0).is_some() && slice.hash(0) == slice.hash(1));
        slice.store(&cache, one.info.id, 0, 0.5, &[0.0; 5]);
        assert_eq!(cache.contents().entries, 0);
    }
}
