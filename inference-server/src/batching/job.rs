//! One request on its way through the server.

use std::sync::Arc;

use parking_lot::Mutex;
use service::telemetry::steps::Cause;
use tokio::time::Instant;

use crate::requests::{
    columns::Starts,
    request::{Asked, ClientId, Priority, Wants},
    response::{Partial, ReplyTo},
};
use crate::{
    models::{slot::Slot, table::Named},
    requests::refusal::Refusal,
};
use network::model::Model;

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
    /// The call that it came by, where its spans are collected.
    pub cause: Option<Cause>,
    /// When it was queued.
    pub queued: Instant,
    pub(super) named: Named,
    pub(super) asked: Asked,
    pub(super) starts: Starts,
    /// The positions to be computed, where others are known already; empty: all.
    pub(super) todo: Vec<u32>,
    /// Hashes of all positions' questions; empty where there is no cache.
    pub(super) hashes: Vec<u64>,
    pub(super) reply_to: ReplyTo,
    pub(super) answer: Mutex<Partial>,
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

    /// Whether its positions' questions have hashes.
    pub fn is_hashed(&self) -> bool {
        !self.job.hashes.is_empty()
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
