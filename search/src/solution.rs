//! Solutions of one-player games: ways to an outcome worth 1, and the proof that none is shorter.
//!
//! Without chance and without another player, a way that was found once is there to be gone: play follows the shortest one
//! that is known. It is proven shortest where no way of fewer actions is possible, which follows from the game's own
//! lower bounds ([`Game::least_actions_left`]) at the nodes of the tree, or from having tried every action of a node.

use games::{Action, FirstValue, Game};

use crate::{
    search::Search,
    tree::{Kind, NodeId, Step},
};

/// The best outcome of a one-player game.
const SOLVED: f32 = 1.0;

/// The shortest way to the best outcome that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solution {
    /// From the decision node; empty: none is known.
    pub actions: Vec<Action>,
    pub is_proven: bool,
    /// Traversals of the decision from which on a proof is tried again.
    next_proof: u32,
}

impl Solution {
    /// What remains of it after an action of the game.
    pub(crate) fn advance(&mut self, action: Action) {
        self.next_proof = 0;
        if self.actions.first() == Some(&action) {
            // The rest of a shortest way is a shortest way.
            self.actions.remove(0);
            self.is_proven &= !self.actions.is_empty();
        } else {
            self.actions.clear();
            self.is_proven = false;
        }
    }
}

impl<G: Game> Search<G> {
    /// The shortest way to the best outcome that is known from the decision node, in one-player games with
    /// [`Settings::stop_when_solved`](crate::Settings::stop_when_solved).
    pub fn solution(&self) -> Option<&[Action]> {
        let actions = self.solution.actions.as_slice();
        (!actions.is_empty()).then_some(actions)
    }

    /// Whether no way is shorter than [`Search::solution`].
    pub fn is_solution_proven(&self) -> bool {
        self.solution.is_proven
    }

    pub(crate) fn seeks_solutions(&self) -> bool {
        G::PLAYERS == 1 && self.settings.stop_when_solved
    }

    /// The bound of the state in `scratch`.
    pub(crate) fn least_left(&self) -> u32 {
        if self.seeks_solutions() {
            self.scratch.least_actions_left()
        } else {
            0
        }
    }

    /// The path ends where the game is over.
    pub(crate) fn note_end(&mut self, value: FirstValue) {
        let known = self.solution.actions.len();
        let is_news = known == 0 || self.path.len() < known;
        if value.get() < SOLVED || !is_news || !self.seeks_solutions() {
            return;
        }
        let Self {
            solution, path, tree, ..
        } = self;
        solution.actions.clear();
        solution
            .actions
            .extend(path.iter().map(|&step| tree.action(step)));
        solution.next_proof = 0;
    }

    /// Tries to prove that the solution is the shortest. Tried again only when an eighth more is known.
    pub(crate) fn prove(&mut self) {
        let length = self.solution.actions.len();
        if length == 0 || self.solution.is_proven || self.done < self.solution.next_proof {
            return;
        }
        self.solution.next_proof = self.done + self.done / 8 + 1;
        self.solution.is_proven = self.needs_at_least(self.root, length as u32);
    }

    /// Whether the tree rules out every way of fewer than `actions` actions from here.
    fn needs_at_least(&self, node: NodeId, actions: u32) -> bool {
        if actions == 0 {
            return true;
        }
        match self.tree.kind(node, self.generation) {
            Kind::Terminal => self.tree.result(node).get() < SOLVED,
            _ if self.tree.least(node) >= actions => true,
            // One action is enough only for who is there already.
            _ if actions == 1 => true,
            _ => (0..self.tree.edges(node) as u32).all(|edge| {
                let child = self.tree.child(Step { node, edge });
                child.is_some_and(|child| self.needs_at_least(child, actions - 1))
            }),
        }
    }
}
