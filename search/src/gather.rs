//! Gathering: visits descend the tree, and each new leaf requests its evaluation. Gray, proven and
//! terminal leaves need none and are backed up at once.

use games::{Action, FirstValue, Game, KnownOutcome, Player, Symmetry};

use crate::{
    search::{Search, outcome_or_legal_actions},
    tree::{MAX_VIRTUAL_LOSSES, NodeId, Stage, Step},
};

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

impl<G: Game> Search<G> {
    /// Visits leaves until [`Settings::leaves`](crate::Settings::leaves) of them are pending or the decision's visits are
    /// used up. `request` is called once for each leaf that needs an evaluation; answer with [`Search::apply`].
    ///
    /// A visit that reaches a pending leaf is abandoned and ends the gather, because the next visit would take the same path.
    /// No node is requested twice. With [`Root::Gumbel`](crate::Root::Gumbel) one sweep over its candidates takes the place of
    /// [`Settings::leaves`](crate::Settings::leaves). A decision node without evaluation is requested alone. While leaves are pending, a
    /// gather does nothing.
    pub fn gather(&mut self, mut request: impl FnMut(LeafRequest<'_, G>)) {
        if self.is_waiting() {
            return;
        }
        self.gathers += 1;
        self.pending.clear();
        self.pending_paths.clear();
        self.pending_orders.clear();
        match self.tree.kind(self.root, self.generation) {
            Stage::Terminal => {}
            _ if self.is_solved() => {}
            Stage::Empty => {
                self.path.clear();
                self.counters.root_evaluations += 1;
                self.request_again(self.root, &mut request);
            }
            Stage::Gray | Stage::Active if self.has_gumbel_root() => {
                self.sweep(&mut request);
                self.prove();
            }
            Stage::Gray | Stage::Active => {
                let most = self.settings.leaves.clamp(1, MAX_VIRTUAL_LOSSES);
                while self.unanswered < most && self.lacks_visits() {
                    if !self.visit(None, &mut request) {
                        self.counters.collisions += 1;
                        break;
                    }
                }
                self.prove();
            }
        }
    }

    /// Makes one visit, through the edge `first` of the decision node if there is one; returns false if it came to a pending leaf.
    pub(crate) fn visit(&mut self, first: Option<u32>, request: &mut impl FnMut(LeafRequest<'_, G>)) -> bool {
        let Some(end) = self.descend(first) else {
            // The path leads to a state without node.
            if self.tree.is_full() && self.is_pending_without_node() {
                return false;
            }
            self.expand(request);
            return true;
        };
        if let Some(outcome) = self.tree.proof(end) {
            self.counters.terminal_visits += 1;
            self.back_up_path(outcome.value());
            return true;
        }
        match self.tree.kind(end, self.generation) {
            Stage::Terminal => {
                self.counters.terminal_visits += 1;
                self.record_solution(self.tree.result(end));
                self.back_up_path(self.tree.result(end));
            }
            Stage::Empty => {
                if self.pending.iter().any(|leaf| leaf.node == Some(end)) {
                    return false;
                }
                self.request_again(end, request);
            }
            Stage::Gray | Stage::Active => {
                self.counters.gray_visits += 1;
                self.tree.activate(end, self.generation);
                self.back_up_path(self.tree.evaluation(end).of_first(self.tree.mover(end)));
            }
        }
        true
    }

    /// Takes the edge `first`, if there is one, and follows PUCT to the first node that is proven or not active, or for whose statistics
    /// the tree has no room. Returns `None` if that node does not exist yet.
    fn descend(&mut self, mut first: Option<u32>) -> Option<NodeId> {
        self.path.clear();
        let mut node = self.root;
        let mut priors: &[u32] = &self.root_prior_bits;
        let any_pending = self.unanswered > 0 && self.uses_virtual_loss();
        loop {
            let edge = match first.take() {
                Some(edge) => edge,
                None => self
                    .selector
                    .select(&self.tree, node, priors, any_pending, &mut self.ties),
            };
            priors = &[];
            let step = Step { node, edge };
            self.path.push(step);
            node = self.tree.child(step)?;
            if self.tree.kind(node, self.generation) != Stage::Active
                || self.tree.proof(node).is_some()
                || !self.tree.add_statistics(node)
            {
                return Some(node);
            }
        }
    }

    /// Adds the node that the path leads to.
    fn expand(&mut self, request: &mut impl FnMut(LeafRequest<'_, G>)) {
        self.replay_path();
        let end =
            outcome_or_legal_actions(&self.scratch, &mut self.legal, &mut self.fault).map(KnownOutcome::over);
        let node = match end.or_else(|| self.known(&self.scratch)) {
            Some(known) => {
                let value = known.outcome.value();
                let node = self.push_certain(known);
                self.counters.terminal_visits += 1;
                self.record_solution(value);
                self.back_up_path(value);
                node
            }
            None => {
                let least = self.least_left();
                let node = self.tree.push_empty(self.scratch.to_move(), &self.legal, least);
                self.counters.unstored += u64::from(node.is_none());
                self.request_evaluation(node, request);
                node
            }
        };
        if let (Some(node), Some(&step)) = (node, self.path.last()) {
            self.tree.set_child(step, node);
            if self.tree.proof(node).is_some() {
                self.carry_proof_up();
            }
        }
    }

    /// Returns true if the leaf at the end of the path is pending without a node, for lack of room.
    fn is_pending_without_node(&self) -> bool {
        self.pending.iter().any(|leaf| {
            leaf.node.is_none() && self.pending_paths.get(leaf.path_end.wrapping_sub(1)) == self.path.last()
        })
    }

    /// Puts the state at the end of the path into `scratch`.
    pub(crate) fn replay_path(&mut self) {
        self.scratch.clone_from(&self.state);
        for &step in &self.path {
            self.scratch.play_legal(self.tree.action(step));
        }
    }

    /// Requests the evaluation of a node at the end of the path, which the tree has without one.
    fn request_again(&mut self, node: NodeId, request: &mut impl FnMut(LeafRequest<'_, G>)) {
        self.replay_path();
        self.legal.clear();
        self.legal.extend(self.tree.actions(node));
        self.request_evaluation(Some(node), request);
    }

    /// Requests the evaluation of the leaf at the end of the path: its state is in `scratch`, its legal actions in `legal`.
    fn request_evaluation(&mut self, node: Option<NodeId>, request: &mut impl FnMut(LeafRequest<'_, G>)) {
        if self.uses_virtual_loss() {
            self.tree.add_virtual_loss(&self.path);
        }
        self.pending_paths.extend_from_slice(&self.path);
        let id = LeafId {
            gather: self.gathers,
            index: self.pending.len() as u32,
        };
        let order = self.pending_orders.len();
        let canonical = match self.settings.random_symmetry {
            true => self.scratch.canonical(&self.legal, &mut self.pending_orders),
            false => None,
        };
        self.pending.push(PendingLeaf {
            node,
            path_end: self.pending_paths.len(),
            legal: self.legal.len() as u32,
            order: canonical.map(|_| order),
            mover: self.scratch.to_move(),
            can_draw: self.asks_the_game() && self.scratch.can_draw(),
            value: None,
        });
        self.unanswered += 1;
        self.counters.evaluations += 1;
        let symmetry = canonical.unwrap_or_else(|| self.draw_symmetry());
        self.ordered.clear();
        let places = self.pending_orders[order..].iter();
        self.ordered
            .extend(places.map(|&place| self.legal[place as usize]));
        request(LeafRequest {
            id,
            state: &self.scratch,
            legal: match canonical {
                Some(_) => &self.ordered,
                None => &self.legal,
            },
            symmetry,
        });
    }

    /// Draws one of the symmetries that the state in `scratch` allows. Nothing is drawn if it allows only one.
    fn draw_symmetry(&mut self) -> Symmetry {
        if !self.settings.random_symmetry {
            return Symmetry::IDENTITY;
        }
        let allowed = || {
            (0..self.scratch.symmetries())
                .map(Symmetry)
                .filter(|&symmetry| self.scratch.allows(symmetry))
        };
        match allowed().count() {
            0 | 1 => Symmetry::IDENTITY,
            count => {
                let drawn = self.symmetries.below(count);
                allowed().nth(drawn).unwrap_or(Symmetry::IDENTITY)
            }
        }
    }

    /// Returns true if pending leaves add virtual losses. A search that requests one leaf at a time needs none, because
    /// nothing descends while its leaf is pending. The leaves of a Gumbel root's sweep have no edge in common.
    pub(crate) fn uses_virtual_loss(&self) -> bool {
        self.settings.leaves > 1 && !self.has_gumbel_root()
    }
}
