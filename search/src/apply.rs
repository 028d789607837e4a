//! Applying evaluations. Those of a gather arrive in any order; the last one backs all of them up in gather order.

use games::{Game, MoverValue};

use crate::{
    leaf::{Evaluation, LeafId},
    search::Search,
};

/// Error: an evaluation that does not fit its leaf. The leaf stays pending.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// The leaf is not pending: it belongs to another gather or was abandoned.
    #[error("no such leaf is pending")]
    UnknownLeaf,
    /// The leaf already has its evaluation.
    #[error("the leaf is already evaluated")]
    AlreadyEvaluated,
    /// The number of priors differs from the number of legal actions.
    #[error("{found} priors for {expected} legal actions")]
    PriorCount {
        /// Number of legal actions of the leaf.
        expected: usize,
        /// Number of priors.
        found: usize,
    },
    /// A prior is negative or not finite.
    #[error("prior {at} is {prior}, which is not a probability")]
    Prior {
        /// Index of the prior.
        at: usize,
        /// Value of the prior.
        prior: f32,
    },
    /// The priors are not a distribution.
    #[error("the priors sum to {sum} instead of 1")]
    PriorSum {
        /// Sum of the priors.
        sum: f32,
    },
    /// The value is outside `[-1, 1]`.
    #[error("value {0} is outside [-1, 1]")]
    Value(f32),
}

/// Greatest distance of the sum of priors from 1. Half-precision priors come within a thousandth.
const SUM_TOLERANCE: f32 = 0.01;

impl<G: Game> Search<G> {
    /// Gives one leaf of the last gather its evaluation. The last evaluation backs all leaves up in gather order, so the
    /// order of arrival does not matter.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed then.
    pub fn apply(&mut self, leaf: LeafId, evaluation: Evaluation<'_>) -> Result<(), ApplyError> {
        if !self.is_waiting() || leaf.gather != self.gathers {
            return Err(ApplyError::UnknownLeaf);
        }
        let waiting = self
            .pending
            .get_mut(leaf.index())
            .ok_or(ApplyError::UnknownLeaf)?;
        if waiting.value.is_some() {
            return Err(ApplyError::AlreadyEvaluated);
        }
        check(evaluation, waiting.legal as usize)?;
        let value = if waiting.can_draw {
            MoverValue::new(evaluation.value.get().max(0.0))
        } else {
            evaluation.value
        };
        waiting.value = Some(value.of_first(waiting.mover));
        let mut priors = evaluation.priors;
        if let Some(begin) = waiting.order {
            self.unordered_priors.clear();
            self.unordered_priors.resize(priors.len(), 0.0);
            for (&place, &prior) in self.pending_orders[begin..].iter().zip(priors) {
                self.unordered_priors[place as usize] = prior;
            }
            priors = &self.unordered_priors;
        }
        if let Some(node) = waiting.node {
            self.tree.evaluate(node, priors, value);
        }
        self.unanswered -= 1;
        if self.unanswered == 0 {
            self.back_up_pending();
        }
        Ok(())
    }

    /// Abandons the pending leaves, so that another gather can request them again. Evaluations that have arrived are kept:
    /// their nodes are gray.
    pub fn abandon(&mut self) {
        if self.is_waiting() && self.uses_virtual_loss() {
            self.tree.remove_virtual_loss(&self.pending_paths);
        }
        self.pending.clear();
        self.pending_paths.clear();
        self.unanswered = 0;
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
    // One pass suffices for valid priors: NaN and infinities carry over into the sum.
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
