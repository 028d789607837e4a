//! Reading and prolonging a search that is under way: what engines and players at a terminal need.

use games::{Action, Game};

use crate::{
    search::Search,
    tree::{Kind, NodeId, Step, VISITS},
};

/// How far a decision's traversals have gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// Traversals.
    pub traversals: u32,
    /// Actions of all of them.
    pub actions: u64,
    /// Actions of the longest.
    pub deepest: u32,
}

impl Depths {
    pub(crate) fn note(&mut self, actions: usize) {
        self.traversals += 1;
        self.actions += actions as u64;
        self.deepest = self.deepest.max(actions as u32);
    }

    /// Actions of a traversal on average; 0 for none.
    pub fn average(&self) -> f64 {
        self.actions as f64 / f64::from(self.traversals.max(1))
    }
}

impl<G: Game> Search<G> {
    /// How far this decision's traversals have gone.
    pub fn depths(&self) -> Depths {
        self.depths
    }

    /// Traversals of this decision that are backed up.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Changes how many traversals a decision takes, at least 1: a search that was decided goes on from where it is with a
    /// larger number, and one under way stops with a smaller one, once its leaves are answered.
    pub fn set_traversals(&mut self, traversals: u32) {
        self.settings.traversals = traversals.max(1);
    }

    /// The most visited line from the decision node on; with `first`, the most visited line that begins with that action.
    /// It ends where nothing was visited in this decision. Of equally visited actions the one with the greater prior counts.
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
