//! A validated request on its way through the queue and the device.

use std::sync::Arc;

use network::model::Model;
use parking_lot::Mutex;
use proto::columns::{Lengths, Offsets};
use service::telemetry::steps::Cause;
use tokio::time::Instant;

use crate::{
    models::{slot::ModelSlot, table::ResolvedModel},
    requests::{
        refusal::Refusal,
        request::{Caller, ClientId, EvaluationRequest, Priority, Wants},
        response::{ReplyTo, ResponseBuilder},
    },
};

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
    response: Mutex<ResponseBuilder>,
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
    pub fn new(
        model: ResolvedModel,
        request: EvaluationRequest,
        caller: impl Into<Caller>,
        reply_to: ReplyTo,
    ) -> Self {
        let Caller { client, cause, .. } = caller.into();
        let layout = &model.model.info.layout;
        let response = ResponseBuilder::new(
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
            response: Mutex::new(response),
        }
    }

    /// Fills in a position from the cache, before the job is queued. `priors` holds one prior for each legal action.
    pub fn fill(&mut self, position: usize, value: f32, priors: &[f32]) {
        let response = self.response.get_mut();
        response.left = response.left.saturating_sub(1);
        response.put(self.request.wants, &self.legal, position, value, priors);
    }

    /// Records the result of the cache look-up: the hash of every position and, if some were filled in, the positions
    /// that are left to compute.
    pub fn set_looked_up(&mut self, hashes: Vec<u64>, unknown: Vec<u32>) {
        self.hashes = hashes;
        self.unknown = unknown;
    }

    /// Sends the answer if the cache knew every position. Returns the number of positions in that case.
    pub fn answer_if_complete(&mut self) -> Option<usize> {
        let response = self.response.get_mut();
        if response.left > 0 {
            return None;
        }
        let version = &self.model.model.info.version;
        let response = response.finish(self.request.wants, version);
        self.reply_to.send(Ok(response));
        Some(self.request.legal_counts.len())
    }

    /// Returns the number of positions in the request.
    pub fn request_positions(&self) -> usize {
        self.request.legal_counts.len()
    }

    /// Returns the number of positions to compute.
    pub fn positions(&self) -> usize {
        match self.unknown.len() {
            0 => self.request_positions(),
            unknown => unknown,
        }
    }

    /// Returns the row and legal actions of a position of the request.
    pub fn position(&self, position: usize) -> (&[u32], &[u32]) {
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

    /// Returns the model that the rows were validated against.
    pub fn validated_by(&self) -> &Model {
        &self.model.model
    }

    /// Returns the model that must compute the job: the one that the requested name points at now. The model that
    /// validated the rows answers instead if the name was unloaded, if its layout changed, or if the cache has already
    /// given a part of the answer.
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
        if self.reply_to.is_gone() || self.response.lock().is_over {
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
        let mut response = self.response.lock();
        if !response.is_over {
            response.is_over = true;
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

    /// Adds the computed values and policies of the slice's positions to the response, and sends the response when
    /// nothing is left to compute. `policy` holds, back to back, one number per legal action, or `actions` logits per
    /// position if the client wants logits. Returns the number of the request's positions if the response was sent.
    pub fn answer(&self, version: &str, values: &[f32], mut policy: &[f32], actions: usize) -> Option<usize> {
        let job = &*self.job;
        let mut response = job.response.lock();
        if response.is_over {
            return None;
        }
        for (position, &value) in self.positions().zip(values) {
            let count = match job.request.wants {
                Wants::Logits => actions,
                _ => self.legal(position).len(),
            };
            let (own, others) = policy.split_at(policy.len().min(count));
            policy = others;
            response.put(job.request.wants, &job.legal, position, value, own);
        }
        response.left = response.left.saturating_sub(self.count);
        if response.left > 0 {
            return None;
        }
        let response = response.finish(job.request.wants, version);
        job.reply_to.send(Ok(response));
        Some(job.request.legal_counts.len())
    }
}
