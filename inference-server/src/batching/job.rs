//! A validated request on its way through the cache, the queue and the device, until its answer is sent.

use std::sync::Arc;

use games::MoverValue;
use network::{
    cache::{Cache, CacheKey, VersionId},
    model::Model,
};
use parking_lot::Mutex;
use proto::{
    columns::{Lengths, Offsets},
    priors,
    v1::EvaluateReply,
};
use service::telemetry::steps::Cause;
use tokio::{sync::mpsc, time::Instant};

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
    /// Priors of the legal actions of all positions, or logits `[positions][actions]`: what the request wants.
    pub policy: Vec<f32>,
}

impl Evaluation {
    /// Returns the message of `minuet.v1.Evaluator`, for a request that wants priors.
    pub fn into_reply(self, id: u64) -> EvaluateReply {
        EvaluateReply {
            id,
            version: self.version,
            values: self.values,
            priors: priors::encode(&self.policy),
            error: None,
        }
    }
}

/// Answer to a request, or the reason why there is none.
pub type EvaluationResult = Result<Evaluation, Refusal>;

/// An answer on its way to the stream or the call that asked.
#[derive(Debug)]
pub struct JobReply {
    /// Id of the request.
    pub id: u64,
    /// The answer or the refusal.
    pub answer: EvaluationResult,
    /// Memory that is charged until the answer has been sent.
    pub charge: Option<MemoryCharge>,
}

/// Destination of an answer.
#[derive(Debug)]
pub struct ReplyTo {
    id: u64,
    sender: mpsc::UnboundedSender<JobReply>,
    charge: Mutex<Option<MemoryCharge>>,
}

impl ReplyTo {
    /// Returns the destination of request `id`, with its charged memory.
    pub fn new(id: u64, sender: mpsc::UnboundedSender<JobReply>, charge: Option<MemoryCharge>) -> Self {
        let charge = Mutex::new(charge);
        Self { id, sender, charge }
    }

    /// Sends the answer. Does nothing if the client is gone.
    pub(crate) fn send(&self, answer: EvaluationResult) {
        let (id, charge) = (self.id, self.charge.lock().take());
        drop(self.sender.send(JobReply { id, answer, charge }));
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
    /// Writes the value and the policy of one position. The numbers of its policy begin at `start`.
    fn put(&mut self, position: usize, value: f32, start: usize, policy: &[f32]) {
        let Evaluation {
            values, policy: all, ..
        } = &mut self.evaluation;
        if let Some(place) = values.get_mut(position) {
            // Rounding in the model must not move a value out of its range.
            *place = value.clamp(-1.0, 1.0);
        }
        if let Some(places) = all.get_mut(start..start + policy.len()) {
            places.copy_from_slice(policy);
        }
    }

    /// Takes the complete answer of the model `version`.
    fn finish(&mut self, version: &str) -> Evaluation {
        self.is_over = true;
        self.evaluation.version = version.to_owned();
        std::mem::take(&mut self.evaluation)
    }
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
    /// Number of actions of the game.
    actions: usize,
    /// Offsets of the rows.
    rows: Offsets,
    /// Offsets of the legal actions.
    legal: Offsets,
    /// Positions to compute, if the cache knew others. Empty: all positions.
    unknown: Vec<u32>,
    /// Cache hash of every position. Empty without a cache.
    pub(crate) hashes: Vec<u64>,
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
        let layout = &model.model.info.layout;
        let (positions, actions) = (request.legal_counts.len(), layout.actions as usize);
        let numbers = match request.wants {
            Wants::Priors => request.legal_actions.len(),
            Wants::Logits => positions * actions,
        };
        let evaluation = Evaluation {
            version: String::new(),
            values: vec![0.0; positions],
            policy: vec![0.0; numbers],
        };
        Self {
            client: caller.client,
            cause: caller.cause,
            queued: Instant::now(),
            rows: Offsets::new(match layout.row_len() {
                Some(row_len) => Lengths::Fixed(row_len),
                None => Lengths::Varying(&request.row_lengths),
            }),
            legal: Offsets::new(Lengths::Varying(&request.legal_counts)),
            actions,
            model,
            request,
            unknown: Vec::new(),
            hashes: Vec::new(),
            reply_to,
            answering: Mutex::new(Answering {
                evaluation,
                left: positions,
                is_over: false,
            }),
        }
    }

    /// Fills in the positions that the cache knows, before the job is queued. Returns the numbers of hits and misses.
    ///
    /// Logits are too large to be stored, so a job that wants logits is hashed only: equal positions share a place in a batch.
    pub fn look_up(&mut self, cache: &Cache) -> (u64, u64) {
        let positions = self.request_positions();
        let mut hashes = Vec::with_capacity(positions);
        let (mut priors, mut unknown, mut hits) = (Vec::new(), Vec::new(), 0);
        let id = self.model.model.info.id;
        for position in 0..positions {
            let key = CacheKey::new(self.row(position), self.legal(position));
            hashes.push(key.hash());
            if self.wants() == Wants::Logits {
                continue;
            }
            priors.clear();
            if let Some(value) = cache.find(&key, id, &mut priors) {
                if hits == 0 {
                    unknown.extend(0..position as u32);
                }
                hits += 1;
                let start = self.legal.start(position);
                let answering = self.answering.get_mut();
                answering.left = answering.left.saturating_sub(1);
                answering.put(position, value.get(), start, &priors);
            } else if hits > 0 {
                unknown.push(position as u32);
            }
        }
        (self.hashes, self.unknown) = (hashes, unknown);
        match self.wants() {
            Wants::Logits => (0, 0),
            Wants::Priors => (hits, positions as u64 - hits),
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

    /// Returns the row of a position of the request.
    pub fn row(&self, position: usize) -> &[u32] {
        self.rows.part(&self.request.indices, position)
    }

    /// Returns the legal actions of a position of the request.
    pub fn legal(&self, position: usize) -> &[u32] {
        self.legal.part(&self.request.legal_actions, position)
    }

    /// Returns the cache hash of a position, if there is a cache.
    pub fn hash(&self, position: usize) -> Option<u64> {
        self.hashes.get(position).copied()
    }

    /// Returns the place of a position's policy in the answer: its start and its length.
    fn policy_place(&self, position: usize) -> (usize, usize) {
        match self.request.wants {
            Wants::Priors => (self.legal.start(position), self.legal(position).len()),
            Wants::Logits => (position * self.actions, self.actions),
        }
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
        let is_partly_known = !self.unknown.is_empty();
        let current = self.slot().and_then(ModelSlot::current);
        let current =
            current.filter(|current| !is_partly_known && current.info.layout == validated_by.info.layout);
        current.unwrap_or_else(|| validated_by.clone())
    }

    /// True if the client no longer waits for the answer.
    pub fn is_abandoned(&self) -> bool {
        self.reply_to.sender.is_closed()
    }

    /// True if the job is answered.
    pub fn is_over(&self) -> bool {
        self.answering.lock().is_over
    }

    /// True if the job is not answered yet. Answers it with [`Refusal::Late`] if its deadline has passed at `now`.
    pub fn is_open(&self, now: Instant) -> bool {
        if self.request.deadline.is_some_and(|deadline| deadline <= now) {
            self.refuse(Refusal::Late);
        }
        !self.is_over()
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

    /// Returns position, value and policy of each position. `policy` holds the policies back to back.
    fn parts<'a>(
        &'a self,
        values: &'a [f32],
        mut policy: &'a [f32],
    ) -> impl Iterator<Item = (usize, f32, &'a [f32])> {
        self.positions().zip(values).map(move |(position, &value)| {
            let (_, count) = self.job.policy_place(position);
            let (own, others) = policy.split_at(policy.len().min(count));
            policy = others;
            (position, value, own)
        })
    }

    /// Stores the evaluations of the slice's positions by the model with this number, unless the client wants logits or the
    /// positions were not looked up.
    pub fn store(&self, cache: &Cache, model: VersionId, values: &[f32], policy: &[f32]) {
        let job = &*self.job;
        if job.wants() == Wants::Logits {
            return;
        }
        for (position, value, priors) in self.parts(values, policy) {
            if let Some(hash) = job.hash(position) {
                let key = CacheKey::hashed(job.row(position), job.legal(position), hash);
                cache.insert(&key, model, priors, MoverValue::new(value));
            }
        }
    }

    /// Adds the computed values and policies of the slice's positions to the answer, and sends the answer when nothing is
    /// left to compute. `policy` holds, back to back, one number for each legal action, or the logits of all actions of each
    /// position if the client wants logits. Returns the number of the request's positions if the answer was sent.
    pub fn answer(&self, version: &str, values: &[f32], policy: &[f32]) -> Option<usize> {
        let job = &*self.job;
        let mut answering = job.answering.lock();
        if answering.is_over {
            return None;
        }
        for (position, value, own) in self.parts(values, policy) {
            answering.put(position, value, job.policy_place(position).0, own);
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
    use crate::tests::{job_with, model, request, slot};

    type Replies = mpsc::UnboundedReceiver<JobReply>;

    fn job_of(model: &Arc<Model>, request: EvaluationRequest) -> (Job, Replies) {
        let (sender, replies) = mpsc::unbounded_channel();
        let job = job_with(&slot(model.clone()), 1, 7, request, &sender);
        (Arc::into_inner(job).unwrap(), replies)
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
        whole(first).store(&cache, one.info.id, &[0.5, -0.5], &[0.25, 0.75, 0.5, 0.5]);

        let (mut all, mut replies) = job(&one, &[6, 5, 6]);
        assert_eq!(all.look_up(&cache), (3, 0));
        assert_eq!(all.answer_if_complete(), Some(3));
        let answer = replies.try_recv().unwrap().answer.unwrap();
        assert_eq!(
            (answer.version.as_str(), answer.values),
            ("1", vec![-0.5, 0.5, -0.5])
        );

        // Another model has no entries.
        assert_eq!(job(&other, &[5]).0.look_up(&cache), (0, 1));

        // Only the positions that the cache does not know are computed.
        let (mut part, mut replies) = job(&one, &[7, 5, 8]);
        assert_eq!(part.look_up(&cache), (1, 2));
        assert_eq!((part.answer_if_complete(), part.positions()), (None, 2));
        let slice = whole(part);
        assert_eq!(slice.positions().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(slice.answer("1", &[0.1, 0.2], &[1.0, 0.0, 0.0, 1.0]), Some(3));
        let answer = replies.try_recv().unwrap().answer.unwrap();
        assert_eq!(answer.values, [0.1, 0.5, 0.2]);
        assert_eq!(answer.policy, [1.0, 0.0, 0.25, 0.75, 0.0, 1.0]);
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
        assert!(logits.hash(0).is_some() && logits.hash(0) == logits.hash(1));
        whole(logits).store(&cache, one.info.id, &[0.5; 2], &[0.0; 10]);
        assert_eq!(cache.contents().entries, 0);
    }
}
