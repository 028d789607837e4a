//! Where questions become requests, and answers find those who asked.
//!
//! A leaf's row is written straight into the request that is being filled. If the cache knows it, or the very
//! same question is on its way already, it is taken out again. The batcher keeps the requests in flight, for they say what an
//! answer is the answer to.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    sync::Arc,
};

use games::{Game, MoverValue};
use proto::v1::EvaluateRequest;
use search::{Evaluation, LeafId, LeafRequest};

use super::slot::Asked;
use crate::{
    cache::{Cache, CacheKey, CachedEvaluation},
    evaluator::{Answer, Ask, VersionId, Versions},
};

/// Who waits for an evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub(super) slot: usize,
    pub(super) leaf: LeafId,
    position: u32,
}

/// An evaluation that the cache had.
#[derive(Clone, Copy, Debug)]
struct Hit {
    leaf: LeafId,
    priors_end: usize,
    known: CachedEvaluation,
}

/// A request, and what is needed to take its answer.
#[derive(Debug, Default)]
struct Batch {
    request: Arc<EvaluateRequest>,
    /// Where each position's row and legal actions end.
    ends: Vec<(usize, usize)>,
    hashes: Vec<u64>,
    waiters: Vec<Waiter>,
}

/// Questions and answers of one worker.
#[derive(Debug)]
pub(super) struct RequestBatcher {
    cache: Option<Arc<Cache>>,
    versions: Arc<Versions>,
    model: String,
    /// Values of every row; `None` where rows differ in length.
    row_len: Option<usize>,
    rows_per_request: usize,
    next_id: u64,
    /// The request that is being filled.
    open: Batch,
    /// Requests that are full and not sent yet.
    full: VecDeque<Batch>,
    in_flight: Vec<Batch>,
    /// What is being asked: hash to (request, position).
    asked: HashMap<u64, (u64, usize), BuildHasherDefault<Same>>,
    hits: Vec<Hit>,
    hit_priors: Vec<f32>,
    /// An answered request whose memory can be used again.
    spare: Vec<Batch>,
}

impl RequestBatcher {
    pub(super) fn new(
        cache: Option<Arc<Cache>>,
        versions: Arc<Versions>,
        model: String,
        row_len: Option<usize>,
        rows_per_request: usize,
    ) -> Self {
        let mut batcher = Self {
            cache,
            versions,
            model,
            row_len,
            rows_per_request: rows_per_request.max(1),
            next_id: 0,
            open: Batch::default(),
            full: VecDeque::new(),
            in_flight: Vec::new(),
            asked: HashMap::default(),
            hits: Vec::new(),
            hit_priors: Vec::new(),
            spare: Vec::new(),
        };
        batcher.open = batcher.new_batch();
        batcher
    }

    /// Takes a question. Where the cache knows the answer, it is handed out by [`RequestBatcher::take_hits`].
    pub(super) fn ask<G: Game>(
        &mut self,
        slot: usize,
        leaf: &LeafRequest<'_, G>,
        encoding: G::Encoding,
    ) -> Asked {
        // Not shared as long as it is not sent, so nothing is cloned.
        let request = Arc::make_mut(&mut self.open.request);
        let (row_start, legal_start) = (request.indices.len(), request.legal_actions.len());
        leaf.state
            .write_row(encoding, leaf.symmetry, &mut request.indices);
        let legal = leaf.legal.iter();
        request
            .legal_actions
            .extend(legal.map(|&action| leaf.state.policy_index(encoding, leaf.symmetry, action)));

        let request: &EvaluateRequest = request;
        let question = CacheKey::new(
            &request.indices[row_start..],
            &request.legal_actions[legal_start..],
        );
        let hash = question.hash();
        let known = match (&self.cache, self.versions.current()) {
            (Some(cache), Some(version)) => cache.find(&question, version, &mut self.hit_priors),
            _ => None,
        };
        if let Some(known) = known {
            self.hits.push(Hit {
                leaf: leaf.id,
                priors_end: self.hit_priors.len(),
                known,
            });
            self.take_back(row_start, legal_start);
            return Asked::Known;
        }
        let company = self.asked.get(&hash).and_then(|&(id, position)| {
            let sent = self.in_flight.iter_mut().chain(&mut self.full);
            let (waiters, (row, legal)) = if id == request.id {
                let own = question_of(request, &self.open.ends, position);
                (&mut self.open.waiters, own)
            } else {
                let batch = sent.into_iter().find(|batch| batch.request.id == id)?;
                (
                    &mut batch.waiters,
                    question_of(&batch.request, &batch.ends, position),
                )
            };
            question.is(row, legal).then_some((waiters, position))
        });
        if let Some((waiters, position)) = company {
            waiters.push(Waiter::new(slot, leaf.id, position));
            self.take_back(row_start, legal_start);
            return Asked::Duplicate;
        }
        self.keep(slot, leaf.id, hash, row_start, legal_start);
        Asked::Fresh
    }

    /// The question need not be asked.
    fn take_back(&mut self, row_start: usize, legal_start: usize) {
        let request = Arc::make_mut(&mut self.open.request);
        request.indices.truncate(row_start);
        request.legal_actions.truncate(legal_start);
    }

    /// The question stays in the request.
    fn keep(&mut self, slot: usize, leaf: LeafId, hash: u64, row_start: usize, legal_start: usize) {
        let row_len = self.row_len;
        let batch = &mut self.open;
        let request = Arc::make_mut(&mut batch.request);
        let position = batch.ends.len();
        let length = request.indices.len() - row_start;
        // Row lengths are only sent where rows vary.
        if row_len != Some(length) {
            debug_assert!(row_len.is_none(), "a row of a length that the layout rules out");
            request.row_lengths.push(length as u32);
        }
        request
            .legal_counts
            .push((request.legal_actions.len() - legal_start) as u32);
        batch
            .ends
            .push((request.indices.len(), request.legal_actions.len()));
        batch.hashes.push(hash);
        // Of two questions with one hash, which are as good as never, only the first finds company.
        self.asked.entry(hash).or_insert((request.id, position));
        batch.waiters.push(Waiter::new(slot, leaf, position));
        if batch.ends.len() >= self.rows_per_request {
            let next = self.new_batch();
            self.full.push_back(std::mem::replace(&mut self.open, next));
        }
    }

    /// Hands out the evaluations that the cache had, in the order of the questions since the last call.
    pub(super) fn take_hits<E>(
        &mut self,
        mut give: impl FnMut(LeafId, Evaluation<'_>, VersionId) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        for hit in &self.hits {
            let evaluation = Evaluation {
                priors: &self.hit_priors[start..hit.priors_end],
                value: hit.known.value,
            };
            start = hit.priors_end;
            give(hit.leaf, evaluation, hit.known.version)?;
        }
        self.hits.clear();
        self.hit_priors.clear();
        Ok(())
    }

    /// Requests that wait for an answer.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether a full request waits to be sent.
    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// The next request to be sent: a full one, or with `even_partial` the one that is being filled, if it holds anything.
    pub(super) fn next_request(&mut self, even_partial: bool) -> Option<Ask> {
        let batch = match self.full.pop_front() {
            Some(batch) => batch,
            None if even_partial && !self.open.ends.is_empty() => {
                let next = self.new_batch();
                std::mem::replace(&mut self.open, next)
            }
            None => return None,
        };
        let ask = Ask {
            request: Arc::clone(&batch.request),
            stamp: self.versions.stamp(),
        };
        self.in_flight.push(batch);
        Some(ask)
    }

    /// Hands an answer to all who wait for it, and to the cache. An answer to nothing is ignored.
    pub(super) fn answered<E>(
        &mut self,
        answer: &Answer,
        mut give: impl FnMut(Waiter, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(at) = self
            .in_flight
            .iter()
            .position(|batch| batch.request.id == answer.id)
        else {
            return Ok(());
        };
        let batch = self.in_flight.swap_remove(at);
        let evaluation = |position: usize| {
            let start = position.checked_sub(1).map_or(0, |before| batch.ends[before].1);
            Evaluation {
                priors: &answer.priors[start..batch.ends[position].1],
                value: MoverValue::new(answer.values[position].clamp(-1.0, 1.0)),
            }
        };
        for (position, hash) in batch.hashes.iter().enumerate() {
            if self.asked.get(hash) == Some(&(answer.id, position)) {
                self.asked.remove(hash);
            }
            if let Some(cache) = &self.cache {
                let (row, legal) = question_of(&batch.request, &batch.ends, position);
                let Evaluation { priors, value } = evaluation(position);
                cache.insert(
                    &CacheKey::hashed(row, legal, *hash),
                    answer.version,
                    priors,
                    value,
                );
            }
        }
        for &waiter in &batch.waiters {
            give(waiter, evaluation(waiter.position as usize))?;
        }
        self.spare.push(batch);
        Ok(())
    }

    fn new_batch(&mut self) -> Batch {
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.ends.clear();
        batch.hashes.clear();
        batch.waiters.clear();
        if Arc::get_mut(&mut batch.request).is_none() {
            // The stream still has it; it is rare enough to make another.
            batch.request = Arc::default();
        }
        let request = Arc::make_mut(&mut batch.request);
        request.indices.clear();
        request.row_lengths.clear();
        request.legal_actions.clear();
        request.legal_counts.clear();
        request.model.clone_from(&self.model);
        request.id = self.next_id;
        self.next_id += 1;
        batch
    }
}

impl Waiter {
    fn new(slot: usize, leaf: LeafId, position: usize) -> Self {
        Self {
            slot,
            leaf,
            position: position as u32,
        }
    }
}

/// The row and the legal actions of one position of a request.
fn question_of<'a>(
    request: &'a EvaluateRequest,
    ends: &[(usize, usize)],
    position: usize,
) -> (&'a [u32], &'a [u32]) {
    let (row_start, legal_start) = position.checked_sub(1).map_or((0, 0), |before| ends[before]);
    let (row_end, legal_end) = ends[position];
    (
        &request.indices[row_start..row_end],
        &request.legal_actions[legal_start..legal_end],
    )
}

/// Hashes are hashes already.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "only for u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
