//! Downward passes: leaves go out, gray and terminal ones are backed up at once.

use games::{Action, FirstValue, Game, Player, Symmetry};

use crate::{
    leaf::{Gathered, LeafId, LeafRequest},
    search::{Search, end_of},
    tree::{Kind, MOST_OUT, NodeId, Step},
};

/// A leaf that is out.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// `None` where the tree had no room for it.
    pub node: Option<NodeId>,
    /// The end of its path in [`Search::paths`]; it begins where the one before ends. Only the decision node has none.
    pub path_end: usize,
    /// Legal actions it has.
    pub legal: u32,
    pub mover: Player,
    /// Its evaluation, once it is answered.
    pub value: Option<FirstValue>,
}

impl<G: Game> Search<G> {
    /// Descends until `settings.leaves` leaves are out, or the decision's traversals are used up;
    /// gray and terminal leaves are backed up at once. `give` is called once for every leaf that goes out.
    ///
    /// A traversal that comes to a leaf that is out already is given up and ends the gather: the next one
    /// would go the same way. No node is ever asked for twice. A decision node without evaluation goes out alone.
    /// While leaves are out, this does nothing.
    pub fn gather(&mut self, mut give: impl FnMut(LeafRequest<'_, G>)) -> Gathered {
        if self.is_waiting() {
            return Gathered { leaves: 0 };
        }
        self.gather += 1;
        self.leaves.clear();
        self.paths.clear();
        match self.tree.kind(self.root, self.generation) {
            Kind::Terminal => {}
            Kind::Empty => {
                self.path.clear();
                self.counters.root_evaluations += 1;
                self.replay();
                self.legal.clear();
                self.legal.extend(self.tree.actions(self.root));
                self.send_out(Some(self.root), &mut give);
            }
            Kind::Gray | Kind::Active if self.solution.is_proven => {}
            Kind::Gray | Kind::Active => {
                let most = self.settings.leaves.clamp(1, MOST_OUT);
                while self.unanswered < most && self.done + self.unanswered < self.settings.traversals {
                    if !self.traverse(&mut give) {
                        self.counters.collisions += 1;
                        break;
                    }
                }
                self.prove();
            }
        }
        Gathered {
            leaves: self.unanswered,
        }
    }

    /// One downward pass; false where it came to a leaf that is out.
    fn traverse(&mut self, give: &mut impl FnMut(LeafRequest<'_, G>)) -> bool {
        let Some(end) = self.descend() else {
            // Nobody has been there.
            if self.tree.is_full() && self.is_out_unstored() {
                return false;
            }
            return self.grow(give);
        };
        match self.tree.kind(end, self.generation) {
            Kind::Terminal => {
                self.counters.terminal_visits += 1;
                self.note_end(self.tree.result(end));
                self.back_up_now(self.tree.result(end));
            }
            Kind::Empty => {
                if self.leaves.iter().any(|leaf| leaf.node == Some(end)) {
                    return false;
                }
                self.replay();
                self.legal.clear();
                self.legal.extend(self.tree.actions(end));
                self.send_out(Some(end), give);
            }
            Kind::Gray | Kind::Active => {
                self.counters.gray_visits += 1;
                self.tree.activate(end, self.generation);
                self.back_up_now(self.tree.evaluation(end).of_first(self.tree.mover(end)));
            }
        }
        true
    }

    /// Follows the formula to the first node that is not active, which is not there yet in the case of `None`.
    fn descend(&mut self) -> Option<NodeId> {
        self.path.clear();
        let mut node = self.root;
        let mut priors: &[u32] = &self.root_prior_bits;
        let any_out = self.unanswered > 0;
        loop {
            let edge = self
                .selector
                .select(&self.tree, node, priors, any_out, &mut self.ties);
            priors = &[];
            let step = Step { node, edge };
            self.path.push(step);
            node = self.tree.child(step)?;
            if self.tree.kind(node, self.generation) != Kind::Active {
                return Some(node);
            }
        }
    }

    /// Makes the node that the path leads to.
    fn grow(&mut self, give: &mut impl FnMut(LeafRequest<'_, G>)) -> bool {
        self.replay();
        let node = match end_of(&self.scratch, &mut self.legal) {
            Some(outcome) => {
                let node = self.tree.push_terminal(outcome.value());
                self.counters.terminal_visits += 1;
                self.note_end(outcome.value());
                self.back_up_now(outcome.value());
                node
            }
            None => {
                let least = self.least_left();
                let node = self.tree.push_empty(self.scratch.to_move(), &self.legal, least);
                self.counters.unstored += u64::from(node.is_none());
                self.send_out(node, give);
                node
            }
        };
        if let (Some(node), Some(&step)) = (node, self.path.last()) {
            self.tree.set_child(step, node);
        }
        true
    }

    /// Whether the leaf at the end of the path is out already, without a node for lack of room.
    fn is_out_unstored(&self) -> bool {
        self.leaves.iter().any(|leaf| {
            leaf.node.is_none() && self.paths.get(leaf.path_end.wrapping_sub(1)) == self.path.last()
        })
    }

    /// Puts the path's end into `scratch`.
    fn replay(&mut self) {
        self.scratch.clone_from(&self.state);
        for &step in &self.path {
            self.scratch.play_legal(self.tree.action(step));
        }
    }

    fn back_up_now(&mut self, value: FirstValue) {
        self.tree.back_up(&self.path, value, self.discount());
        self.done += 1;
        self.depths.note(self.path.len());
        self.counters.visits += 1;
    }

    /// The leaf at the end of the path goes out; its state is in `scratch`, its legal actions in `legal`.
    fn send_out(&mut self, node: Option<NodeId>, give: &mut impl FnMut(LeafRequest<'_, G>)) {
        if self.counts_losses() {
            self.tree.send_out(&self.path);
        }
        self.paths.extend_from_slice(&self.path);
        let id = LeafId {
            gather: self.gather,
            index: self.leaves.len() as u32,
        };
        self.leaves.push(Leaf {
            node,
            path_end: self.paths.len(),
            legal: self.legal.len() as u32,
            mover: self.scratch.to_move(),
            value: None,
        });
        self.unanswered += 1;
        self.counters.evaluations += 1;
        let symmetry = self.draw_symmetry();
        give(LeafRequest {
            id,
            state: &self.scratch,
            legal: &self.legal as &[Action],
            symmetry,
        });
    }

    /// One of the symmetries that the state in `scratch` allows. Nothing is drawn where only one is.
    fn draw_symmetry(&mut self) -> Symmetry {
        if !self.settings.random_symmetry {
            return Symmetry::IDENTITY;
        }
        let allowed = || {
            (0..G::SYMMETRIES)
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

    /// Whether leaves that are out are marked on their paths: nothing descends past the only one.
    pub(crate) fn counts_losses(&self) -> bool {
        self.settings.leaves > 1
    }

    /// The discount of one action: none where there are two players.
    pub(crate) fn discount(&self) -> f32 {
        if G::PLAYERS == 1 {
            self.settings.discount
        } else {
            1.0
        }
    }
}
