//! Requests of a search for evaluations, and their answers: [`LeafRequest`], [`Evaluation`].

use games::{Action, FirstValue, MoverValue, Player, Symmetry};

use crate::tree::NodeId;

/// Identifier of one leaf of one gather of one search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafId {
    pub(crate) gather: u64,
    pub(crate) index: u32,
}

impl LeafId {
    /// Returns the index of the leaf in its gather, from 0.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// Leaf that needs an evaluation. It borrows from the search, so an evaluator must copy the parts that it keeps.
#[derive(Debug)]
pub struct LeafRequest<'a, G> {
    /// Identifier to pass to [`Search::apply`](crate::Search::apply).
    pub id: LeafId,
    /// State to evaluate. The game is not over in it.
    pub state: &'a G,
    /// Legal actions of the state; at least one. They ascend, unless the state has a canonical image: then their policy
    /// entries in that image do.
    pub legal: &'a [Action],
    /// Symmetry in which to evaluate the state. It applies to the row and to the policy index of each legal action.
    pub symmetry: Symmetry,
}

/// A leaf whose evaluation was requested.
#[derive(Clone, Debug)]
pub(crate) struct PendingLeaf {
    /// Node of the leaf; `None` if the tree had no room for it.
    pub node: Option<NodeId>,
    /// End of the leaf's path in the paths of all pending leaves. The path begins where the previous one ends. Only the decision
    /// node has an empty path.
    pub path_end: usize,
    /// Number of legal actions.
    pub legal: u32,
    /// Begin of the leaf's order among those of all pending leaves. `None` if its legal actions were requested ascending.
    pub order: Option<usize>,
    pub mover: Player,
    /// True if the game knows that the player to act can draw at once, so that the leaf is worth at least 0 to that player.
    pub can_draw: bool,
    /// Value of the leaf, once it is evaluated.
    pub value: Option<FirstValue>,
}

/// Evaluation of a leaf.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation<'a> {
    /// One prior for each legal action, in their order: not negative, with sum 1 ± 0.01.
    pub priors: &'a [f32],
    /// Value for the player to act in the leaf, in `[-1, 1]`.
    pub value: MoverValue,
}

/// Result of a gather.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Number of leaves that were requested.
    pub leaves: u32,
}
