//! Collects the leaves of many searches into batches and distributes the evaluations: [`Batcher`].
//!
//! The row of a leaf is written straight into the batch that is being filled. It is removed again if the cache holds its
//! evaluation, or if an equal position is in a batch already; the leaf then shares that position's evaluation.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    mem,
    sync::Arc,
};

use games::{Game, MoverValue};
use search::{Evaluation, LeafId, LeafRequest};

use crate::{
    cache::{Cache, CacheKey, VersionId},
    client::{PositionBatch, Predictions},
};

/// A leaf that waits for its evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// Number of the leaf's search, chosen by the caller.
    pub slot: usize,
    /// The leaf within that search.
    pub leaf: LeafId,
}

/// Origin of the evaluation of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// From the network: the position is in the open batch.
    Fresh,
    /// From the cache: [`Batcher::take_known`] returns the evaluation.
    Cached,
    /// From the network, together with an equal position that is in a batch already.
    Duplicate,
}

/// An evaluation that is known without asking the network.
#[derive(Clone, Copy, Debug)]
struct KnownEvaluation {
    waiter: Waiter,
    /// End of its priors in [`Batcher::known_priors`].
    priors_end: usize,
    value: MoverValue,
    version: VersionId,
}

/// Positions that travel together, and the leaves that wait for them.
#[derive(Debug, Default)]
struct Batch {
    id: u64,
    positions: PositionBatch,
    /// Hash of each position's cache key.
    hashes: Vec<u64>,
    /// Waiting leaves, each with the index of its position, in the order in which they were added.
    waiters: Vec<(Waiter, usize)>,
}

/// Collects leaves into batches. Any number of batches may be in flight; they may be completed in any order.
#[derive(Debug)]
pub struct Batcher {
    cache: Option<Arc<Cache>>,
    /// Positions of a full batch.
    batch_size: usize,
    next_id: u64,
    /// The batch that is being filled.
    open: Batch,
    /// Full batches that are not in flight yet, oldest first.
    full: VecDeque<Batch>,
    in_flight: Vec<Batch>,
    /// Hash of every position that is in a batch: the batch's id and the position's index.
    pending: HashMap<u64, (u64, usize), BuildHasherDefault<IdentityHasher>>,
    known: Vec<KnownEvaluation>,
    known_priors: Vec<f32>,
    /// Completed batches whose memory is used again.
    spare: Vec<Batch>,
}

impl Batcher {
    /// Returns an empty batcher. A batch is full at `batch_size` positions (at least 1). Without `cache` only equal positions in
    /// flight are found.
    pub fn new(cache: Option<Arc<Cache>>, batch_size: usize) -> Self {
        Self {
            cache,
            batch_size: batch_size.max(1),
            next_id: 1,
            open: Batch::default(),
            full: VecDeque::new(),
            in_flight: Vec::new(),
            pending: HashMap::default(),
            known: Vec::new(),
            known_priors: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Adds a leaf of the search in `slot`. The cache answers only with evaluations by `version`; `None` skips the cache.
    pub fn add<G: Game>(
        &mut self,
        slot: usize,
        leaf: &LeafRequest<'_, G>,
        encoding: G::Encoding,
        version: Option<VersionId>,
    ) -> Lookup {
        let waiter = Waiter { slot, leaf: leaf.id };
        let position = self.open.positions.len();
        self.open.positions.push(leaf, encoding);
        let (row, legal) = self.open.positions.get(position);
        let key = CacheKey::new(row, legal);
        let hash = key.hash();
        if let (Some(cache), Some(version)) = (&self.cache, version)
            && let Some(found) = cache.find(&key, version, &mut self.known_priors)
        {
            self.put_known(waiter, found, version);
            self.open.positions.pop();
            return Lookup::Cached;
        }
        let equal = self.pending.get(&hash).copied().filter(|&(id, earlier)| {
            self.batch(id).is_some_and(|batch| {
                let (row, legal) = batch.positions.get(earlier);
                key.is(row, legal)
            })
        });
        if let Some((id, earlier)) = equal {
            self.open.positions.pop();
            if let Some(batch) = self.batch_mut(id) {
                batch.waiters.push((waiter, earlier));
            }
            return Lookup::Duplicate;
        }
        // If two different positions share a hash, which practically never happens, only the first is found again.
        self.pending.entry(hash).or_insert((self.open.id, position));
        self.open.hashes.push(hash);
        self.open.waiters.push((waiter, position));
        if position + 1 >= self.batch_size {
            let full = self.replace_open();
            self.full.push_back(full);
        }
        Lookup::Fresh
    }

    /// Adds an evaluation that the caller knows already; [`Batcher::take_known`] returns it.
    pub fn add_known(
        &mut self,
        waiter: Waiter,
        priors: impl IntoIterator<Item = f32>,
        value: MoverValue,
        version: VersionId,
    ) {
        self.known_priors.extend(priors);
        self.put_known(waiter, value, version);
    }

    /// Adds a known evaluation whose priors are the last ones of [`Batcher::known_priors`].
    fn put_known(&mut self, waiter: Waiter, value: MoverValue, version: VersionId) {
        self.known.push(KnownEvaluation {
            waiter,
            priors_end: self.known_priors.len(),
            value,
            version,
        });
    }

    /// Passes on the evaluations that were known when their leaves were added, in the order of the leaves since the last call.
    ///
    /// # Errors
    /// The first error that `apply` returns; the remaining evaluations are dropped.
    pub fn take_known<E>(
        &mut self,
        mut apply: impl FnMut(Waiter, Evaluation<'_>, VersionId) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        let applied = self.known.iter().try_for_each(|known| {
            let evaluation = Evaluation {
                priors: &self.known_priors[start..known.priors_end],
                value: known.value,
            };
            start = known.priors_end;
            apply(known.waiter, evaluation, known.version)
        });
        self.known.clear();
        self.known_priors.clear();
        applied
    }

    /// Returns the number of positions in the batch that is being filled.
    pub fn open_positions(&self) -> usize {
        self.open.positions.len()
    }

    /// Returns the number of batches that wait for [`Batcher::complete`].
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// True if a full batch waits for [`Batcher::next_batch`].
    pub fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Returns the id and the positions of the next batch to evaluate: the oldest full one; without one, and with
    /// `even_partial`, the batch that is being filled unless it is empty. The batch is in flight afterwards. Ids ascend.
    pub fn next_batch(&mut self, even_partial: bool) -> Option<(u64, &PositionBatch)> {
        let batch = match self.full.pop_front() {
            Some(batch) => batch,
            None if even_partial && !self.open.positions.is_empty() => self.replace_open(),
            None => return None,
        };
        self.in_flight.push(batch);
        self.in_flight.last().map(|batch| (batch.id, &batch.positions))
    }

    /// Passes the evaluations of a batch, computed by `version`, to the waiting leaves and to the cache. An id that is not in
    /// flight is ignored.
    ///
    /// `predictions` must hold one value for each position and one prior for each of its legal actions; code that receives
    /// predictions from outside must check this first.
    ///
    /// # Errors
    /// The first error that `apply` returns; the batch's remaining leaves get no evaluation.
    pub fn complete<E>(
        &mut self,
        id: u64,
        version: VersionId,
        predictions: &Predictions,
        mut apply: impl FnMut(Waiter, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(at) = self.in_flight.iter().position(|batch| batch.id == id) else {
            return Ok(());
        };
        let batch = self.in_flight.swap_remove(at);
        for (position, &hash) in batch.hashes.iter().enumerate() {
            if self.pending.get(&hash) == Some(&(id, position)) {
                self.pending.remove(&hash);
            }
            if let Some(cache) = &self.cache {
                let (row, legal) = batch.positions.get(position);
                let Evaluation { priors, value } = predictions.get(&batch.positions, position);
                cache.insert(&CacheKey::hashed(row, legal, hash), version, priors, value);
            }
        }
        let applied = batch
            .waiters
            .iter()
            .try_for_each(|&(waiter, position)| apply(waiter, predictions.get(&batch.positions, position)));
        self.spare.push(batch);
        applied
    }

    /// Forgets every leaf and every batch. The cache keeps what it has.
    pub fn clear(&mut self) {
        self.spare.append(&mut self.in_flight);
        self.spare.extend(self.full.drain(..));
        let open = self.replace_open();
        self.spare.push(open);
        self.pending.clear();
        self.known.clear();
        self.known_priors.clear();
    }

    /// Takes the batch that is being filled and begins another.
    fn replace_open(&mut self) -> Batch {
        let mut next = self.spare.pop().unwrap_or_default();
        next.positions.clear();
        next.hashes.clear();
        next.waiters.clear();
        next.id = self.next_id;
        self.next_id += 1;
        mem::replace(&mut self.open, next)
    }

    fn batch(&self, id: u64) -> Option<&Batch> {
        if self.open.id == id {
            return Some(&self.open);
        }
        self.in_flight
            .iter()
            .chain(&self.full)
            .find(|batch| batch.id == id)
    }

    fn batch_mut(&mut self, id: u64) -> Option<&mut Batch> {
        if self.open.id == id {
            return Some(&mut self.open);
        }
        self.in_flight
            .iter_mut()
            .chain(&mut self.full)
            .find(|batch| batch.id == id)
    }
}

/// Hasher for keys that are hashes already: the hash of a `u64` is the number itself.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        debug_assert!(false, "only u64 keys are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
