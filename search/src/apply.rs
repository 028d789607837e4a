//! Upward passes: answers come in, in any order; the last one backs all of them up in gather order.

use games::{Game, MoverValue};

use crate::{
    leaf::{Evaluation, LeafId},
    search::Search,
};

/// An answer that does not fit its question. The leaf still waits for a good one.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// No such leaf is out: it belongs to another gather, was abandoned, or never was.
    #[error("no such leaf is out")]
    UnknownLeaf,
    /// The leaf has its answer.
    #[error("the leaf is answered already")]
    Answered,
    /// Not one prior for each legal action.
    #[error("{found} priors for {expected} legal actions")]
    PriorCount {
        /// Legal actions of the leaf.
        expected: usize,
        /// Priors there were.
        found: usize,
    },
    /// A prior that is negative or not a number.
    #[error("prior {at} is {prior}, which is no probability")]
    Prior {
        /// Its place.
        at: usize,
        /// The prior.
        prior: f32,
    },
    /// Priors that are no distribution.
    #[error("priors sum to {sum} and not to 1")]
    PriorSum {
        /// Their sum.
        sum: f32,
    },
    /// A value outside `[-1, 1]`.
    #[error("value {0} is outside [-1, 1]")]
    Value(f32),
}

/// How far the sum of priors may be from 1 (half-precision priors come within a thousandth).
const SUM_TOLERANCE: f32 = 0.01;

impl<G: Game> Search<G> {
    /// Answers one leaf of the last gather. When the last answer is in, all are backed up in gather order,
    /// so the order of arrival cannot matter.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed then.
    pub fn apply(&mut self, leaf: LeafId, evaluation: Evaluation<'_>) -> Result<(), ApplyError> {
        if !self.is_waiting() || leaf.gather != self.gather {
            return Err(ApplyError::UnknownLeaf);
        }
        let waiting = self.leaves.get_mut(leaf.index()).ok_or(ApplyError::UnknownLeaf)?;
        if waiting.value.is_some() {
            return Err(ApplyError::Answered);
        }
        check(evaluation, waiting.legal as usize)?;
        waiting.value = Some(evaluation.value.of_first(waiting.mover));
        if let Some(node) = waiting.node {
            self.tree.evaluate(node, evaluation.priors, evaluation.value);
        }
        self.unanswered -= 1;
        if self.unanswered == 0 {
            self.back_up_all();
        }
        Ok(())
    }

    /// Gives up the leaves that are out, so that another gather can ask again. Answers that are in already are kept
    /// for it: their nodes are gray.
    pub fn abandon(&mut self) {
        if self.is_waiting() && self.counts_losses() {
            self.tree.take_back(&self.paths);
        }
        self.leaves.clear();
        self.paths.clear();
        self.unanswered = 0;
    }

    fn back_up_all(&mut self) {
        if self.counts_losses() {
            self.tree.take_back(&self.paths);
        }
        let discount = self.discount();
        let mut begin = 0;
        for leaf in &self.leaves {
            let path = &self.paths[begin..leaf.path_end];
            begin = leaf.path_end;
            if let Some(node) = leaf.node {
                self.tree.activate(node, self.generation);
            }
            if let (false, Some(value)) = (path.is_empty(), leaf.value) {
                self.tree.back_up(path, value, discount);
                self.done += 1;
                self.depths.note(path.len());
                self.counters.visits += 1;
            }
        }
        self.leaves.clear();
        self.paths.clear();
        if self.root_priors.is_empty() {
            self.open_root();
        }
    }
}

fn check(evaluation: Evaluation<'_>, legal: usize) -> Result<(), ApplyError> {
    let Evaluation { priors, value } = evaluation;
    if priors.len() != legal {
        return Err(ApplyError::PriorCount {
            expected: legal,
            found: priors.len(),
        });
    }
    // One pass for what is nearly always the case; NaN and infinities carry over into the sum.
    let (mut sum, mut least) = (0.0f32, 0.0f32);
    for &prior in priors {
        sum += prior;
        least = if prior < least { prior } else { least };
    }
    if !((sum - 1.0).abs() <= SUM_TOLERANCE && least >= 0.0) {
        let is_probability = |prior: f32| prior >= 0.0 && prior.is_finite();
        return Err(match priors.iter().position(|&prior| !is_probability(prior)) {
            Some(at) => ApplyError::Prior {
                at,
                prior: priors[at],
            },
            None => ApplyError::PriorSum { sum },
        });
    }
    if !is_value(value) {
        return Err(ApplyError::Value(value.get()));
    }
    Ok(())
}

fn is_value(value: MoverValue) -> bool {
    (-1.0..=1.0).contains(&value.get())
}
