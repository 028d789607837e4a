//! What a search asks and what it is told: [`LeafRequest`], [`Evaluation`].

use games::{Action, MoverValue, Symmetry};

/// Names one leaf of one gather. Never valid for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafId {
    pub(crate) gather: u64,
    pub(crate) index: u32,
}

impl LeafId {
    /// The leaf's place in its gather, from 0.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// A leaf that needs an evaluation. Write what is needed of it: nothing of it may be kept.
#[derive(Debug)]
pub struct LeafRequest<'a, G> {
    /// What to answer to.
    pub id: LeafId,
    /// The state to evaluate. It is not over.
    pub state: &'a G,
    /// Its legal actions, ascending; at least one.
    pub legal: &'a [Action],
    /// The symmetry to see it in: for the row, and for the policy index of each legal action.
    pub symmetry: Symmetry,
}

/// What an evaluator says about a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'a> {
    /// One prior for each legal action, in their order, not negative, with sum 1 (to a hundredth).
    pub priors: &'a [f32],
    /// The value for the player to act in the leaf, in `[-1, 1]`.
    pub value: MoverValue,
}

/// What a gather handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Leaves that wait for their evaluation.
    pub leaves: u32,
}
