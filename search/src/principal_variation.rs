//! The principal variation: the most visited line of a search.

use games::{Action, Game};

use crate::{
    search::Search,
    tree::{Kind, NodeId, Step, VISITS},
};

impl<G: Game> Search<G> {
    /// Returns the most visited line from the decision node on, or the most visited one that begins with `first`. The line
    /// ends where this decision has no visits. A [solution](Search::solution) of a two-player game is the line. Of equally visited
    /// actions the one with the greater prior counts. The line of a [`Root::Gumbel`](crate::Root::Gumbel) begins with its choice.
    pub fn principal_variation(&self, first: Option<Action>) -> Vec<Action> {
        let begins = |line: &&[Action]| first.is_none_or(|first| line.first() == Some(&first));
        if let Some(solution) = self.solution().filter(|_| self.seeks_proofs()).filter(begins) {
            return solution.to_vec();
        }
        let first = first.or_else(|| self.best_candidate().filter(|_| self.visits_done > 0));
        let mut line = Vec::new();
        let mut node = self.root;
        while matches!(self.tree.kind(node, self.generation), Kind::Active) {
            let edge = match first.filter(|_| line.is_empty()) {
                Some(first) => self.tree.actions(node).position(|action| action == first),
                None => self.most_visited(node),
            };
            let Some(edge) = edge else { break };
            let step = Step {
                node,
                edge: edge as u32,
            };
            line.push(self.tree.action(step));
            match self.tree.child(step) {
                Some(child) => node = child,
                None => break,
            }
        }
        line
    }

    /// Returns the visited edge of a node with the most visits. Those that a proof refutes come last.
    fn most_visited(&self, node: NodeId) -> Option<usize> {
        let mut best: Option<(bool, u32, f32, usize)> = None;
        let visits = self.tree.statistic(node, VISITS).iter().copied();
        for (edge, (visits, prior)) in visits.zip(self.tree.priors(node)).enumerate() {
            let step = Step {
                node,
                edge: edge as u32,
            };
            let rank = (!self.tree.is_refuted(step), visits, prior, edge);
            let is_better = best.is_none_or(|best| (rank.0, rank.1, rank.2) > (best.0, best.1, best.2));
            if visits > 0 && is_better {
                best = Some(rank);
            }
        }
        best.map(|(.., edge)| edge)
    }
}
