//! Proofs in games of two players: the outcome of a node with best play of both ([`Settings::solver`]; Winands' MCTS-Solver).
//!
//! A node is won for its player if an action leads to a node that is won for the same player. Otherwise its outcome is known
//! once those of all its children are: a draw if one of them is a draw, or else a loss. Outcomes name the winner, so nothing
//! here depends on who acts when.
//!
//! Proofs arise where the game is over, or where the game itself knows its outcome ([`Game::known`]), and go up the path that led
//! there. Every game knows the wins by one action, so none is overlooked, however small its prior. Proofs belong to the nodes
//! of one tree, whose states include the history of the game, and stay valid in later decisions. A proven node is a leaf for every later visit: its value is the outcome and needs no
//! evaluation. Actions that are proven losses are not selected while others are open.

use games::{Action, Game, KnownOutcome, Outcome, Player};

use crate::{
    search::{Search, outcome_or_legal_actions},
    tree::{NEAR_PROOF, NodeId, PRIOR, PROOF, Stage, Step, Tree, VISITS},
};

impl Tree {
    /// Returns the outcome of a node that is proven.
    pub(crate) fn proof(&self, node: NodeId) -> Option<Outcome> {
        match self.words[node.0 as usize] >> PROOF & 3 {
            0 => None,
            1 => Some(Outcome::Won(Player::First)),
            2 => Some(Outcome::Won(Player::Second)),
            _ => Some(Outcome::Draw),
        }
    }

    pub(crate) fn set_proof(&mut self, node: NodeId, outcome: Outcome) {
        let bits = match outcome {
            Outcome::Won(Player::First) => 1,
            Outcome::Won(Player::Second) => 2,
            Outcome::Draw => 3,
            Outcome::Scored(_) => 0,
        };
        self.words[node.0 as usize] |= bits << PROOF;
    }

    /// Returns true if a child of the node is proven.
    pub(crate) fn is_near_proof(&self, node: NodeId) -> bool {
        self.words[node.0 as usize] & NEAR_PROOF != 0
    }

    /// Returns the proven outcome of the child of an edge.
    pub(crate) fn proof_below(&self, step: Step) -> Option<Outcome> {
        self.child(step).and_then(|child| self.proof(child))
    }

    /// Returns true if proofs rule an edge out: it loses although the node is not lost, or it gives away the proven outcome
    /// of its node.
    pub(crate) fn is_refuted(&self, step: Step) -> bool {
        let below = self.proof_below(step);
        match self.proof(step.node) {
            Some(outcome) => below != Some(outcome),
            None => below == Some(Outcome::Won(self.mover(step.node).other())),
        }
    }

    /// Returns the outcome that the children of a node prove, if they do.
    fn proof_by_children(&self, node: NodeId) -> Option<Outcome> {
        let mover = self.mover(node);
        let (mut is_complete, mut is_draw) = (true, false);
        for edge in 0..self.edges(node) as u32 {
            match self.proof_below(Step { node, edge }) {
                Some(Outcome::Won(winner)) if winner == mover => return Some(Outcome::Won(mover)),
                Some(outcome) => is_draw |= outcome == Outcome::Draw,
                None => is_complete = false,
            }
        }
        let rest = if is_draw {
            Outcome::Draw
        } else {
            Outcome::Won(mover.other())
        };
        is_complete.then_some(rest)
    }

    /// Carries the proof of a child of the last node of `path` up, as far as it decides nodes.
    fn carry_up(&mut self, path: &[Step]) {
        for &step in path.iter().rev() {
            self.words[step.node.0 as usize] |= NEAR_PROOF;
            if self.proof(step.node).is_some() {
                return;
            }
            match self.proof_by_children(step.node) {
                Some(outcome) => self.set_proof(step.node, outcome),
                None => return,
            }
        }
    }

    /// Returns true for a leaf that replaces a whole subtree: the game continues there, but its outcome is known.
    pub(crate) fn is_cut(&self, node: NodeId) -> bool {
        self.edges(node) == 0 && self.visit_sum(node) > 0
    }

    /// Returns the number of actions from a proven node to the end of the game: the winner takes the shortest way known,
    /// the loser the longest.
    fn length(&self, node: NodeId) -> u32 {
        self.best(node)
            .map_or_else(|| self.visit_sum(node), |(_, length)| length.saturating_add(1))
    }

    /// Returns the edge to play at a proven node, and the length of the game after it; `None` at a leaf. Of equally long
    /// ways the one with more visits counts, then the one with the greater prior.
    fn best(&self, node: NodeId) -> Option<(u32, u32)> {
        let outcome = self.proof(node)?;
        let is_won = outcome == Outcome::Won(self.mover(node));
        let (priors, visits) = (self.column(node, PRIOR), self.statistic(node, VISITS));
        let candidates = (0u32..)
            .zip(priors.iter().zip(visits))
            .filter_map(|(edge, (&prior, &visits))| {
                let child = self.child(Step { node, edge })?;
                (self.proof(child) == Some(outcome)).then(|| (edge, self.length(child), visits, prior))
            });
        let best = candidates.reduce(|best, other| {
            let order = match outcome {
                Outcome::Draw => other.2.cmp(&best.2),
                _ if is_won => best.1.cmp(&other.1),
                _ => other.1.cmp(&best.1),
            };
            // Floats that are not negative have the order of their bits.
            let is_better = order.then(other.2.cmp(&best.2)).then(other.3.cmp(&best.3));
            if is_better.is_gt() { other } else { best }
        })?;
        Some((best.0, best.1))
    }
}

impl<G: Game> Search<G> {
    pub(crate) fn seeks_proofs(&self) -> bool {
        G::players() == 2 && self.settings.solver
    }

    /// Returns true if the game is asked what it knows about a leaf: always where proofs are sought.
    pub(crate) fn asks_the_game(&self) -> bool {
        G::players() == 2 && (self.settings.exact_leaves || self.settings.solver)
    }

    /// Returns what the game knows about the outcome of a state that is not over, if it is asked.
    pub(crate) fn known(&self, state: &G) -> Option<KnownOutcome> {
        if self.asks_the_game() { state.known() } else { None }
    }

    /// Returns true if all visits of the decision went to actions that are proven losses, although another action is open. The
    /// decision then continues until one of the others has a visit.
    pub(crate) fn has_only_lost_visits(&self) -> bool {
        if !self.tree.is_near_proof(self.root) || self.tree.proof(self.root).is_some() {
            return false;
        }
        let mut visited = (0u32..)
            .zip(self.root_visits())
            .filter(|&(_, &visits)| visits > 0)
            .map(|(edge, _)| self.is_root_edge_refuted(edge))
            .peekable();
        visited.peek().is_some() && visited.all(|is_refuted| is_refuted)
    }

    pub(crate) fn is_root_edge_refuted(&self, edge: u32) -> bool {
        self.tree.is_refuted(Step {
            node: self.root,
            edge,
        })
    }

    /// Adds a leaf whose value is certain at the end of the current path.
    pub(crate) fn push_certain(&mut self, known: KnownOutcome) -> Option<NodeId> {
        let node = self.tree.push_terminal(known.outcome.value(), known.actions)?;
        if self.seeks_proofs() {
            self.tree.set_proof(node, known.outcome);
        }
        Some(node)
    }

    /// Carries the proof of the leaf at the end of the current path up. Solves the decision if it reaches the root.
    pub(crate) fn carry_proof_up(&mut self) {
        if self.seeks_proofs() {
            self.tree.carry_up(&self.path);
            self.solve_by_proof();
        }
    }

    /// Makes the line from a proven decision node the solution, if there is none yet.
    pub(crate) fn solve_by_proof(&mut self) {
        if self.solution.is_proven || !self.seeks_proofs() || self.is_over() {
            return;
        }
        let mut node = self.root;
        self.solution.actions.clear();
        while let Some((edge, _)) = self.tree.best(node) {
            let step = Step { node, edge };
            self.solution.actions.push(self.tree.action(step));
            let Some(child) = self.tree.child(step) else { break };
            node = child;
        }
        self.solution.is_proven = !self.solution.actions.is_empty();
        self.add_last_action();
    }

    /// Completes a proven solution that ends one action before the end of the game.
    fn add_last_action(&mut self) {
        if !self.solution.is_proven {
            return;
        }
        self.scratch.clone_from(&self.state);
        for &action in &self.solution.actions {
            self.scratch.play_legal(action);
        }
        if outcome_or_legal_actions(&self.scratch, &mut self.legal, &mut self.fault).is_some() {
            return;
        }
        let Some(known) = self.known(&self.scratch).filter(|known| known.actions == 1) else {
            return;
        };
        let ends = |&action: &Action| {
            let mut next = self.scratch.clone();
            next.play_legal(action);
            next.outcome() == Some(known.outcome)
        };
        self.solution
            .actions
            .extend(self.legal.iter().copied().find(ends));
    }

    /// Proves a decision node whose outcome the game knows, without a visit: its actions lead to ends of the game or to other
    /// states that the game knows.
    pub(crate) fn solve_by_knowledge(&mut self) {
        let is_new = self.tree.kind(self.root, self.generation) == Stage::Empty;
        if !is_new || !self.seeks_proofs() || self.known(&self.state).is_none() {
            return;
        }
        if !self.tree.add_statistics(self.root) {
            return;
        }
        for edge in 0..self.tree.edges(self.root) as u32 {
            let step = Step {
                node: self.root,
                edge,
            };
            self.path.clear();
            self.path.push(step);
            self.replay_path();
            let end = outcome_or_legal_actions(&self.scratch, &mut self.legal, &mut self.fault)
                .map(KnownOutcome::over);
            let Some(known) = end.or_else(|| self.known(&self.scratch)) else {
                continue;
            };
            if let Some(node) = self.push_certain(known) {
                self.tree.set_child(step, node);
            }
        }
        self.carry_proof_up();
    }
}
