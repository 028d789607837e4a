//! The principal variation: the most visited line of a search.

use games::{Action, Game};

use crate::{
    search::Search,
    tree::{Kind, NodeId, Step, VISITS},
};

impl<G: Game> Search<G> {
    /// Returns the most visited line from the decision node on, or the most visited one that begins with `first`. The line
    /// ends where this decision has no visits. Of equally visited actions the one with the greater prior counts.
    pub fn principal_variation(&self, first: Option<Action>) -> Vec<Action> {
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

    fn most_visited(&self, node: NodeId) -> Option<usize> {
        let mut best: Option<(u32, f32, usize)> = None;
        let visits = self.tree.column(node, VISITS).iter().copied();
        for (edge, (visits, prior)) in visits.zip(self.tree.priors(node)).enumerate() {
            let is_better =
                best.is_none_or(|(most, greatest, _)| visits > most || (visits == most && prior > greatest));
            if visits > 0 && is_better {
                best = Some((visits, prior, edge));
            }
        }
        best.map(|(_, _, edge)| edge)
    }
}
