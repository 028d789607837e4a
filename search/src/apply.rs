//! Applying evaluations, and backup. Evaluations of a gather arrive in any order; the last one backs all of them up in gather order: each
//! leaf's value goes into every edge of the path that led to it.

use games::{FirstValue, Game, MoverValue};

use crate::{
    gather::{LeafId, LeafRequest},
    search::Search,
    tree::{BEST, Step, TOTAL, Tree, VISITS},
};

/// Evaluation of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'a> {
    /// One prior for each legal action, in their order: not negative, with sum 1 ± 0.01.
    pub priors: &'a [f32],
    /// Value for the player to act in the leaf, in `[-1, 1]`.
    pub value: MoverValue,
}

/// Error: an evaluation that does not fit its leaf. The leaf stays pending.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// The leaf is not pending: it belongs to another gather or was abandoned.
    #[error("no such leaf is pending")]
    UnknownLeaf,
    /// The leaf already has its evaluation.
    #[error("the leaf is already evaluated")]
    AlreadyEvaluated,
    /// The priors are not a distribution over the legal actions, or the value is out of range.
    #[error("{0}")]
    Invalid(String),
}

/// Largest distance of the sum of priors from 1. Half-precision priors come within a thousandth.
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

    /// Completes the decision. `evaluate` is called in gather order; it appends one prior for each legal action to the empty
    /// list and returns the value for the player to act.
    ///
    /// # Errors
    /// [`ApplyError`] for the first evaluation that does not fit; the pending leaves are then abandoned.
    pub fn decide(
        &mut self,
        mut evaluate: impl FnMut(&LeafRequest<'_, G>, &mut Vec<f32>) -> MoverValue,
    ) -> Result<(), ApplyError> {
        let mut priors = Vec::new();
        let mut own = Vec::new();
        let mut answers = Vec::new();
        self.abandon();
        while !self.is_decided() {
            priors.clear();
            answers.clear();
            self.gather(|request| {
                own.clear();
                let value = evaluate(&request, &mut own);
                priors.extend_from_slice(&own);
                answers.push((request.id, priors.len(), value));
            });
            let mut begin = 0;
            for &(id, end, value) in &answers {
                let priors = &priors[begin..end];
                begin = end;
                if let Err(error) = self.apply(id, Evaluation { priors, value }) {
                    self.abandon();
                    return Err(error);
                }
            }
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

    /// Backs up the current path, whose leaf needed no evaluation.
    pub(crate) fn back_up_path(&mut self, value: FirstValue) {
        self.tree.back_up(&self.path, value, self.discount());
        self.count_visit(self.path.len());
    }

    /// Backs up all pending leaves in the order in which they were gathered, once each has its evaluation.
    pub(crate) fn back_up_pending(&mut self) {
        if self.uses_virtual_loss() {
            self.tree.remove_virtual_loss(&self.pending_paths);
        }
        let discount = self.discount();
        let mut begin = 0;
        for index in 0..self.pending.len() {
            let leaf = &self.pending[index];
            let path = &self.pending_paths[begin..leaf.path_end];
            begin = leaf.path_end;
            if let Some(node) = leaf.node {
                self.tree.activate(node, self.generation);
            }
            if let (false, Some(value)) = (path.is_empty(), leaf.value) {
                let actions = path.len();
                self.tree.back_up(path, value, discount);
                self.count_visit(actions);
            }
        }
        self.pending.clear();
        self.pending_paths.clear();
        if self.root_priors.is_empty() {
            self.activate_root();
        }
    }

    fn count_visit(&mut self, actions: usize) {
        self.visits_done += 1;
        self.depths.add(actions);
        self.counters.visits += 1;
    }

    /// Returns the discount of one action: 1 unless the game has one player.
    fn discount(&self) -> f32 {
        if G::players() == 1 {
            self.settings.discount
        } else {
            1.0
        }
    }
}

impl Tree {
    /// Adds one visit with the leaf's value to each edge of the path. Each edge receives the value as seen by the player who
    /// chose it, discounted once for every action in between.
    pub(crate) fn back_up(&mut self, path: &[Step], leaf: FirstValue, discount: f32) {
        let mut value = leaf;
        for &step in path.iter().rev() {
            value = value.discounted(discount);
            let seen = value.seen_by(self.mover(step.node));
            let places = (self.place(step, TOTAL), self.place(step, VISITS));
            let (Some(total), Some(visits)) = places else {
                // Every node of a path has statistics.
                continue;
            };
            self.words[total] = (f32::from_bits(self.words[total]) + seen.get()).to_bits();
            if let (true, Some(best)) = (self.keeps_best(), self.place(step, BEST)) {
                let before = f32::from_bits(self.words[best]);
                let is_first = self.words[visits] == 0;
                self.words[best] = if is_first {
                    seen.get()
                } else {
                    before.max(seen.get())
                }
                .to_bits();
            }
            self.words[visits] += 1;
            *self.visit_sum_mut(step.node) += 1;
        }
    }
}

fn check(evaluation: Evaluation<'_>, legal: usize) -> Result<(), ApplyError> {
    let Evaluation { priors, value } = evaluation;
    let invalid = |reason| Err(ApplyError::Invalid(reason));
    if priors.len() != legal {
        return invalid(format!("{} priors for {legal} legal actions", priors.len()));
    }
    // One pass suffices for valid priors: NaN and infinities carry over into the sum.
    let (mut sum, mut least) = (0.0f32, 0.0f32);
    for &prior in priors {
        sum += prior;
        least = if prior < least { prior } else { least };
    }
    if !((sum - 1.0).abs() <= SUM_TOLERANCE && least >= 0.0) {
        let is_probability = |prior: f32| prior >= 0.0 && prior.is_finite();
        return match priors.iter().position(|&prior| !is_probability(prior)) {
            Some(at) => invalid(format!(
                "prior {at} is {}, which is not a probability",
                priors[at]
            )),
            None => invalid(format!("the priors sum to {sum} instead of 1")),
        };
    }
    match value.get() {
        -1.0..=1.0 => Ok(()),
        value => invalid(format!("value {value} is outside [-1, 1]")),
    }
}
