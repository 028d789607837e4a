//! The leaves of many searches travel together: [`Evaluator`].
//!
//! A leaf is asked ([`Evaluator::ask`]) while its search gathers. What is known already is answered from the cache, and equal
//! questions travel once; the rest waits for [`Evaluator::flush`], which evaluates all of it in one batch and hands every
//! answer to whoever asked. A search belongs to a *slot*, a number that the caller chooses.

use std::{collections::HashMap, sync::Arc};

use games::{Game, MoverValue};
use network::cache::{Cache, CacheKey, VersionId};
use search::{Evaluation, LeafId, LeafRequest};

use network::{Network, NetworkError, PositionBatch, Predictions};

/// A network's version never changes while it is open, so one number does for all.
const VERSION: VersionId = VersionId(0);

/// Who answers.
#[derive(Clone, Debug)]
pub enum Source {
    /// Every action is as likely as the next, every position is worth 0.
    Uniform,
    /// A network, and what it has said before.
    Network {
        /// The network.
        network: Arc<dyn Network>,
        /// Shared by all evaluators of the same network; `None`: nothing is remembered.
        cache: Option<Arc<Cache>>,
    },
}

/// What an evaluator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Positions that the network evaluated.
    pub fresh: u64,
    /// Answered from the cache.
    pub cached: u64,
    /// Answered together with an equal question.
    pub duplicates: u64,
    /// Batches.
    pub batches: u64,
}

/// Takes the questions of one thread's searches to their network.
#[derive(Debug)]
pub struct Evaluator<G: Game> {
    source: Source,
    encoding: G::Encoding,
    /// What will be asked.
    questions: PositionBatch,
    hashes: Vec<u64>,
    /// Who asked, and which of the questions.
    waiting: Vec<(usize, LeafId, usize)>,
    asked: HashMap<u64, usize>,
    /// What is known already: who asked, and where the priors end.
    known: Vec<(usize, LeafId, usize, MoverValue)>,
    known_priors: Vec<f32>,
    answers: Predictions,
    counts: Counts,
}

impl<G: Game> Evaluator<G> {
    /// An evaluator without questions. The network's rows must be those of `encoding`
    /// ([`encoding_of`](network::file::encoding_of)).
    pub fn new(source: Source, encoding: G::Encoding) -> Self {
        Self {
            source,
            encoding,
            questions: PositionBatch::default(),
            hashes: Vec::new(),
            waiting: Vec::new(),
            asked: HashMap::new(),
            known: Vec::new(),
            known_priors: Vec::new(),
            answers: Predictions::default(),
            counts: Counts::default(),
        }
    }

    /// Who answers.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Positions that wait for [`Evaluator::flush`].
    pub fn waiting(&self) -> usize {
        self.questions.len()
    }

    /// Takes a leaf of the search in `slot`.
    pub fn ask(&mut self, slot: usize, leaf: &LeafRequest<'_, G>) {
        let Source::Network { cache, .. } = &self.source else {
            let count = leaf.legal.len();
            self.known_priors
                .resize(self.known_priors.len() + count, 1.0 / count as f32);
            let end = self.known_priors.len();
            self.known.push((slot, leaf.id, end, MoverValue::new(0.0)));
            return;
        };
        self.questions.push(leaf, self.encoding);
        let position = self.questions.len() - 1;
        let (row, legal) = self.questions.get(position);
        let question = CacheKey::new(row, legal);
        let hash = question.hash();
        if let Some(known) = cache
            .as_ref()
            .and_then(|cache| cache.find(&question, VERSION, &mut self.known_priors))
        {
            let end = self.known_priors.len();
            self.known.push((slot, leaf.id, end, known.value));
            self.questions.pop();
            self.counts.cached += 1;
            return;
        }
        if let Some(&earlier) = self.asked.get(&hash) {
            let (row, legal) = self.questions.get(earlier);
            if question.is(row, legal) {
                self.waiting.push((slot, leaf.id, earlier));
                self.questions.pop();
                self.counts.duplicates += 1;
                return;
            }
        }
        self.asked.insert(hash, position);
        self.hashes.push(hash);
        self.waiting.push((slot, leaf.id, position));
    }

    /// Hands out what was known when it was asked. Call it after each gather: searches go on without waiting then.
    ///
    /// # Errors
    /// The first error that `give` returns; the rest is dropped.
    pub fn hand_out_known<E>(
        &mut self,
        mut give: impl FnMut(usize, LeafId, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        let mut done = Ok(());
        for &(slot, leaf, end, value) in &self.known {
            let priors = &self.known_priors[start..end];
            start = end;
            done = give(slot, leaf, Evaluation { priors, value });
            if done.is_err() {
                break;
            }
        }
        self.known.clear();
        self.known_priors.clear();
        done
    }

    /// Evaluates everything that waits, in one batch, and hands out the answers.
    ///
    /// # Errors
    /// [`NetworkError`], or what `give` returns. The questions are dropped then: abandon their searches' leaves.
    pub fn flush<E: From<NetworkError>>(
        &mut self,
        mut give: impl FnMut(usize, LeafId, Evaluation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let done = self.evaluate().map_err(E::from).and_then(|()| {
            self.waiting.iter().try_for_each(|&(slot, leaf, position)| {
                give(slot, leaf, self.answers.get(&self.questions, position))
            })
        });
        self.drop_questions();
        done
    }

    /// Forgets every question.
    pub fn drop_questions(&mut self) {
        self.questions.clear();
        self.hashes.clear();
        self.waiting.clear();
        self.asked.clear();
        self.known.clear();
        self.known_priors.clear();
    }

    fn evaluate(&mut self) -> Result<(), NetworkError> {
        let Source::Network { network, cache } = &self.source else {
            return Ok(());
        };
        if self.questions.is_empty() {
            return Ok(());
        }
        self.answers.clear();
        network.evaluate(&self.questions, &mut self.answers)?;
        self.counts.batches += 1;
        self.counts.fresh += self.questions.len() as u64;
        if let Some(cache) = cache {
            for (position, &hash) in self.hashes.iter().enumerate() {
                let (row, legal) = self.questions.get(position);
                let Evaluation { priors, value } = self.answers.get(&self.questions, position);
                cache.insert(&CacheKey::hashed(row, legal, hash), VERSION, priors, value);
            }
        }
        Ok(())
    }
}
