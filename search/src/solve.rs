//! Solutions of one-player games: sequences of actions to an outcome of value 1, and the proof that none is shorter.
//!
//! Without chance and without another player, a solution that was found once stays valid, so play follows the shortest one
//! known. It is proven shortest if no sequence of fewer actions can exist. That follows from the game's lower bounds
//! ([`Game::least_actions_left`]) at the nodes of the tree, or from having tried every action of a node.

use games::{Action, FirstValue, Game};

use crate::{
    search::Search,
    tree::{NodeId, Stage, Step},
};

/// Value of the best outcome of a one-player game.
const SOLVED: f32 = 1.0;

/// The shortest solution known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solution {
    /// Actions from the decision node; empty if no solution is known.
    pub actions: Vec<Action>,
    pub is_proven: bool,
    /// Number of visits of the decision at which a proof is tried again.
    pub next_proof: u32,
}

impl Solution {
    /// Drops the first action if the game took it, or else the whole solution.
    pub(crate) fn advance(&mut self, action: Action) {
        self.next_proof = 0;
        if self.actions.first() == Some(&action) {
            // The rest of a shortest solution is a shortest solution.
            self.actions.remove(0);
            self.is_proven &= !self.actions.is_empty();
        } else {
            self.actions.clear();
            self.is_proven = false;
        }
    }
}

impl<G: Game> Search<G> {
    /// Returns the shortest solution known from the decision node, in one-player games with
    /// [`Settings::stop_when_solved`](crate::Settings::stop_when_solved). In two-player games with
    /// [`Settings::solver`](crate::Settings::solver), returns the best line known from a decision node whose outcome is
    /// proven, up to the end of the game or to a state whose outcome the game knows.
    pub fn solution(&self) -> Option<&[Action]> {
        let actions = self.solution.actions.as_slice();
        (!actions.is_empty()).then_some(actions)
    }

    /// Returns true if [`Search::solution`] is proven to be the shortest.
    #[cfg(test)]
    pub(crate) fn is_solution_proven(&self) -> bool {
        self.solution.is_proven
    }

    pub(crate) fn seeks_solutions(&self) -> bool {
        G::players() == 1 && self.settings.stop_when_solved
    }

    /// Returns the lower bound of the state in `scratch`, 0 if solutions are not sought.
    pub(crate) fn least_left(&self) -> u32 {
        if self.seeks_solutions() {
            self.scratch.least_actions_left()
        } else {
            0
        }
    }

    /// Records the path as the solution if it solves the game with fewer actions than the known solution.
    pub(crate) fn record_solution(&mut self, value: FirstValue) {
        let known = self.solution.actions.len();
        let is_shorter = known == 0 || self.path.len() < known;
        if value.get() < SOLVED || !is_shorter || !self.seeks_solutions() {
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

    /// Tries to prove that the solution is the shortest, and tries again after an eighth more visits.
    pub(crate) fn prove(&mut self) {
        let length = self.solution.actions.len();
        if length == 0 || self.solution.is_proven || self.visits_done < self.solution.next_proof {
            return;
        }
        self.solution.next_proof = self.visits_done + self.visits_done / 8 + 1;
        self.solution.is_proven = self.needs_at_least(self.root, length as u32);
    }

    /// Returns true if the tree rules out every solution of fewer than `actions` actions from this node.
    fn needs_at_least(&self, node: NodeId, actions: u32) -> bool {
        if actions == 0 {
            return true;
        }
        match self.tree.kind(node, self.generation) {
            Stage::Terminal => self.tree.result(node).get() < SOLVED,
            _ if self.tree.least(node) >= actions => true,
            // Only a terminal node is solved with fewer than one action.
            _ if actions == 1 => true,
            _ => (0..self.tree.edges(node) as u32).all(|edge| {
                let child = self.tree.child(Step { node, edge });
                child.is_some_and(|child| self.needs_at_least(child, actions - 1))
            }),
        }
    }
}
