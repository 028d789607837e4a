//! Evaluates the leaves of many searches with a network that is called directly: [`BatchedEvaluator`].
//!
//! ```
//! use games::{Game, connect_four::ConnectFour};
//! use network::batched::{BatchedEvaluator, EvaluationSource};
//! use search::{GameKey, Search, Settings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // With `EvaluationSource::Network`, `flush` evaluates the leaves of all slots in one batch.
//! let mut evaluator = BatchedEvaluator::<ConnectFour>::new(EvaluationSource::Uniform, Default::default());
//! let settings = Settings { visits: 50, ..Settings::default() };
//! let mut search = Search::new(ConnectFour::EMPTY, settings, GameKey { run_seed: 1, game: 1 });
//! let slot = 0;
//! while !search.is_decided() {
//!     search.gather(|leaf| evaluator.add(slot, &leaf));
//!     evaluator.take_known(|_, leaf, evaluation| search.apply(leaf, evaluation))?;
//!     evaluator.flush(|_, leaf, evaluation| {
//!         search.apply(leaf, evaluation).map_err(Box::<dyn std::error::Error>::from)
//!     })?;
//! }
//! assert_eq!(search.visits_done(), 50);
//! # Ok(())
//! # }
//! ```

use std::{iter, sync::Arc};

use games::{Game, MoverValue};
use search::{Evaluation, LeafId, LeafRequest};

use super::{Batcher, Lookup, Waiter};
use crate::{
    cache::{Cache, VersionId},
    client::{Network, NetworkError, Predictions},
};

/// A network counts as one version while it is open, so one id is enough.
const VERSION: VersionId = VersionId(0);

/// Origin of evaluations.
#[derive(Clone, Debug)]
pub enum EvaluationSource {
    /// No network: every legal action has the same prior, and every value is 0 ([`BatchedEvaluator::with_values`] replaces it).
    Uniform,
    /// A network.
    Network {
        /// The network.
        network: Arc<dyn Network>,
        /// Cache that all evaluators of this network share. `None`: nothing is cached.
        cache: Option<Arc<Cache>>,
    },
}

/// Numbers of evaluations, by where they came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvaluationCounts {
    /// Positions that the network evaluated.
    pub fresh: u64,
    /// Positions that the cache knew.
    pub cached: u64,
    /// Positions that were evaluated together with an equal one.
    pub duplicates: u64,
    /// Batches that the network evaluated.
    pub batches: u64,
}

/// Collects the leaves of one thread's searches and evaluates them in one batch. Each search has a *slot*, a number that
/// the caller chooses.
#[derive(Debug)]
pub struct BatchedEvaluator<G: Game> {
    source: EvaluationSource,
    encoding: G::Encoding,
    batcher: Batcher,
    predictions: Predictions,
    counts: EvaluationCounts,
    /// Values of positions without a network; `None`: 0.
    values: Option<fn(&G) -> MoverValue>,
}

impl<G: Game> BatchedEvaluator<G> {
    /// Returns an evaluator without leaves. The rows of the network must be those of `encoding`.
    pub fn new(source: EvaluationSource, encoding: G::Encoding) -> Self {
        let cache = match &source {
            EvaluationSource::Uniform => None,
            EvaluationSource::Network { cache, .. } => cache.clone(),
        };
        Self {
            source,
            encoding,
            batcher: Batcher::new(cache, usize::MAX),
            predictions: Predictions::default(),
            counts: EvaluationCounts::default(),
            values: None,
        }
    }

    /// Sets the values of positions that [`EvaluationSource::Uniform`] evaluates; `None`: all are 0.
    #[must_use]
    pub fn with_values(mut self, values: Option<fn(&G) -> MoverValue>) -> Self {
        self.values = values;
        self
    }

    /// Returns the origin of evaluations.
    pub fn source(&self) -> &EvaluationSource {
        &self.source
    }

    /// Returns the numbers of evaluations since the evaluator was made.
    pub fn counts(&self) -> EvaluationCounts {
        self.counts
    }

    /// Returns the number of positions that wait for [`BatchedEvaluator::flush`].
    pub fn waiting(&self) -> usize {
        self.batcher.open_positions()
    }

    /// Adds a leaf of the search in `slot`.
    pub fn add(&mut self, slot: usize, leaf: &LeafRequest<'_, G>) {
        if matches!(self.source, EvaluationSource::Uniform) {
            let count = leaf.legal.len();
            let priors = iter::repeat_n(1.0 / count as f32, count);
            let waiter = Waiter { slot, leaf: leaf.id };
            let value = self.values.map_or(MoverValue::new(0.0), |of| of(leaf.state));
            self.batcher.add_known(waiter, priors, value, VERSION);
            return;
        }
        match self.batcher.add(slot, leaf, self.encoding, Some(VERSION)) {
            Lookup::Fresh => {}
            Lookup::Cached => self.counts.cached += 1,
            Lookup::Duplicate => self.counts.duplicates += 1,
        }
    }

    /// Passes on the evaluations that need no network: (slot, leaf, evaluation). Call this after each gather, so that a
    /// search whose leaves are all known continues at once.
    ///
    /// # Errors
    /// The first error that `apply` returns; the remaining evaluations are dropped.
    pub fn take_known<E>(
        &mut self,
        mut apply: impl FnMut(usize, LeafId, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.batcher
            .take_known(|waiter, evaluation, _| apply(waiter.slot, waiter.leaf, evaluation))
    }

    /// Evaluates all waiting positions in one batch and passes the evaluations on: (slot, leaf, evaluation).
    ///
    /// # Errors
    /// [`NetworkError`], or the first error that `apply` returns. All leaves are forgotten then: their searches must
    /// abandon them.
    pub fn flush<E: From<NetworkError>>(
        &mut self,
        apply: impl FnMut(usize, LeafId, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let flushed = self.evaluate(apply);
        self.batcher.clear();
        flushed
    }

    /// Forgets all leaves.
    pub fn clear(&mut self) {
        self.batcher.clear();
    }

    fn evaluate<E: From<NetworkError>>(
        &mut self,
        mut apply: impl FnMut(usize, LeafId, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let EvaluationSource::Network { network, .. } = &self.source else {
            return Ok(());
        };
        let Some((id, positions)) = self.batcher.next_batch(true) else {
            return Ok(());
        };
        self.predictions.clear();
        network.evaluate(positions, &mut self.predictions)?;
        self.counts.batches += 1;
        self.counts.fresh += positions.len() as u64;
        self.batcher
            .complete(id, VERSION, &self.predictions, |waiter, evaluation| {
                apply(waiter.slot, waiter.leaf, evaluation)
            })
    }
}
