//! A request before it is queued: some of its positions may be known already.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::job::Job;
use crate::models::{slot::Slot, table::Named};
use crate::requests::{
    columns::Starts,
    request::{Asked, Caller, Wants},
    response::{Evaluation, Partial, ReplyTo},
};
use network::model::Model;

/// A request that [`crate::intake::validate::check`] has accepted, some of whose positions may be known.
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
        let actions = named.model.info.layout.actions as usize;
        Self {
            answer: Partial::new(asked.wants, positions, asked.legal_actions.len(), actions),
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
    pub fn into_job(mut self, caller: impl Into<Caller>, reply_to: ReplyTo) -> Job {
        if !self.known.is_empty() {
            self.named.slot = None;
        }
        let Caller { client, cause, .. } = caller.into();
        let unknown = self.known.iter().enumerate().filter(|(_, known)| !**known);
        Job {
            client,
            cause,
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
