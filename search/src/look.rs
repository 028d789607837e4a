//! A read-only look at any node of the tree, by the path of actions from the decision node, and the most visited line.

use games::{Action, Game, MoverValue, Outcome, Player};

use crate::{
    search::Search,
    tree::{NodeId, Step, VISITS},
};

pub use crate::tree::Stage;

/// One node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// State of the node.
    pub stage: Stage,
    /// Player to act. At a node where the game is over, the first player.
    pub mover: Player,
    /// Value that the evaluator gave, or the result where the game is over; `None` before the evaluation.
    pub evaluation: Option<MoverValue>,
    /// Sum of the visits of the children.
    pub visits: u32,
    /// Outcome of the game from the node on, if it is known or [proven](crate::Settings::solver).
    pub proven: Option<Outcome>,
    /// Legal actions in ascending order; none where the game is over.
    pub children: Vec<Child>,
}

/// One action of a node, and the node below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The action.
    pub action: Action,
    /// Prior as the search uses it: at the decision node with noise. 0 before the node is evaluated.
    pub prior: f32,
    /// Number of visits in this decision.
    pub visits: u32,
    /// Mean value `Q` of these visits for the player to act at the parent; `None` without visits.
    pub value: Option<MoverValue>,
    /// Outcome of the game after the action, if it is known or [proven](crate::Settings::solver).
    pub proven: Option<Outcome>,
    /// State of the node below; `None` if the action was never tried.
    pub stage: Option<Stage>,
    /// Terms of the formula by which the next visit chooses; `None` unless the node counts visits of this decision.
    pub terms: Option<Terms>,
}

/// Terms of the PUCT formula for one action of a node, for the player to act. With `N` visits of the action, `ΣN` of the node and
/// the exploration constant `c`, the next visit takes the action with the largest
/// `V = (F + W) / (1 + N) + c · P · √ΣN / (1 + N)`. Leaves that wait for their evaluation are not counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// `F`, the first-play urgency.
    pub first_play: f32,
    /// `W`, the sum of the values of the visits; with [`Settings::max_share`](crate::Settings::max_share), its mixture with the best.
    pub total: f32,
    /// `Q = (F + W) / (1 + N)`.
    pub value: f32,
    /// `U = c · P · √ΣN / (1 + N)`.
    pub exploration: f32,
}

impl Terms {
    /// Returns `V = Q + U`.
    pub fn score(&self) -> f32 {
        self.value + self.exploration
    }
}

impl<G: Game> Search<G> {
    /// Returns the node that `path` leads to from the decision node. `None` if the tree has no such node.
    pub fn look(&self, path: &[Action]) -> Option<Look> {
        let mut node = self.root;
        for &action in path {
            let edge = self.tree.actions(node).position(|legal| legal == action)?;
            node = self.tree.child(Step {
                node,
                edge: edge as u32,
            })?;
        }
        Some(self.look_at(node))
    }

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
        while matches!(self.tree.kind(node, self.generation), Stage::Active) {
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

    /// Returns the edge of a node with the most visits, among those that no proof refutes if there are any: one without visits
    /// counts more than one that is refuted. `None` if no edge has visits.
    fn most_visited(&self, node: NodeId) -> Option<usize> {
        let mut best: Option<(bool, u32, f32, usize)> = None;
        let visits = self.tree.statistic(node, VISITS).iter().copied();
        if visits.clone().all(|visits| visits == 0) {
            return None;
        }
        for (edge, (visits, prior)) in visits.zip(self.tree.priors(node)).enumerate() {
            let step = Step {
                node,
                edge: edge as u32,
            };
            let rank = (!self.tree.is_refuted(step), visits, prior, edge);
            let is_better = best.is_none_or(|best| (rank.0, rank.1, rank.2) > (best.0, best.1, best.2));
            if is_better {
                best = Some(rank);
            }
        }
        best.map(|(.., edge)| edge)
    }

    fn look_at(&self, node: NodeId) -> Look {
        let kind = self.tree.kind(node, self.generation);
        let mover = self.tree.mover(node);
        // Statistics of an earlier decision do not count.
        let counts = |count: u32| if kind == Stage::Active { count } else { 0 };
        let priors: Vec<f32> = match &self.root_priors[..] {
            noisy @ [_, ..] if node == self.root => noisy.to_vec(),
            _ => self.tree.priors(node).collect(),
        };
        let visits = self.tree.statistic(node, VISITS);
        let statistics = visits.iter().zip(self.tree.totals(node));
        let terms = (kind == Stage::Active).then(|| {
            let bits = if node == self.root {
                &self.root_prior_bits[..]
            } else {
                &[]
            };
            self.selector.terms(&self.tree, node, bits)
        });
        let children: Vec<Child> = (0..)
            .zip(self.tree.actions(node))
            .zip(priors)
            .zip(statistics)
            .map(|(((edge, action), prior), (&visits, total))| {
                let visits = counts(visits);
                let below = self.tree.child(Step { node, edge });
                Child {
                    action,
                    prior,
                    visits,
                    value: (visits > 0).then(|| MoverValue::new(total / visits as f32)),
                    proven: self.tree.proof_below(Step { node, edge }),
                    stage: below.map(|below| self.tree.kind(below, self.generation)),
                    terms: terms.as_ref().and_then(|terms| terms.get(edge as usize).copied()),
                }
            })
            .collect();
        Look {
            stage: kind,
            mover,
            evaluation: match kind {
                Stage::Empty => None,
                Stage::Terminal => Some(self.tree.result(node).seen_by(mover)),
                Stage::Gray | Stage::Active => Some(self.tree.evaluation(node)),
            },
            visits: children.iter().map(|child| child.visits).sum(),
            proven: self.tree.proof(node),
            children,
        }
    }
}
