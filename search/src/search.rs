//! The state machine: [`Search`], its decision node, its budget of visits, its [`Counters`], and re-rooting.

use games::{Action, Game, IllegalAction, Outcome};

use crate::{
    draws::{Draws, GameKey, Purpose},
    gather::PendingLeaf,
    gumbel::Halving,
    noise,
    puct::Selector,
    settings::{Reuse, Settings},
    solve::Solution,
    tree::{MAX_ACTIONS, NodeId, Stage, Step, Tree, VISITS},
};

/// The search of one game, from its first state on.
///
/// A decision takes [`Settings::visits`] visits. [`Search::advance`] plays an action and begins the next decision. Gathers and applies alternate: while leaves are pending, a gather does nothing.
#[derive(Clone, Debug)]
pub struct Search<G: Game> {
    pub(crate) settings: Settings,
    pub(crate) key: GameKey,
    pub(crate) ply: u32,
    pub(crate) state: G,
    /// Nodes hold no states; paths are replayed in this one.
    pub(crate) scratch: G,
    pub(crate) tree: Tree,
    pub(crate) root: NodeId,
    /// Number of the decision whose statistics count. Never 0.
    pub(crate) generation: u32,
    /// Priors of the decision node with noise; empty until the node is evaluated.
    pub(crate) root_priors: Vec<f32>,
    /// Bits of [`Search::root_priors`].
    pub(crate) root_prior_bits: Vec<u32>,
    /// Visits of this decision that are backed up.
    pub(crate) visits_done: u32,
    pub(crate) depths: Depths,
    /// Sequential halving, from the first visit of a decision with a Gumbel root on.
    pub(crate) halving: Option<Halving>,
    pub(crate) selector: Selector,
    pub(crate) ties: Draws,
    pub(crate) symmetries: Draws,
    /// Number of gathers so far; part of each [`LeafId`](crate::LeafId).
    pub(crate) gathers: u64,
    /// Leaves of the last gather that await their backup, in gather order.
    pub(crate) pending: Vec<PendingLeaf>,
    /// Paths of the pending leaves, one behind the other.
    pub(crate) pending_paths: Vec<Step>,
    /// Orders of the pending leaves with a canonical image, one behind the other: for each action as requested its place among
    /// the legal actions, ascending.
    pub(crate) pending_orders: Vec<u32>,
    /// Number of pending leaves without evaluation.
    pub(crate) unanswered: u32,
    pub(crate) path: Vec<Step>,
    pub(crate) legal: Vec<Action>,
    /// Legal actions in the order of a canonical image.
    pub(crate) ordered: Vec<Action>,
    /// Priors of a leaf whose actions were requested in another order, ascending by action.
    pub(crate) unordered_priors: Vec<f32>,
    pub(crate) counters: Counters,
    pub(crate) next_compaction: usize,
    pub(crate) solution: Solution,
    /// Why the rules failed in a state of this game.
    pub(crate) fault: Option<String>,
}

impl<G: Game> Search<G> {
    /// Begins with a decision at `root`. Settings out of range are not refused here: see [`Settings::check`].
    pub fn new(root: G, settings: Settings, key: GameKey) -> Self {
        debug_assert!(root.actions() <= MAX_ACTIONS, "the tree packs actions");
        let mut search = Self {
            tree: Tree::new(&settings, G::players() == 1 && settings.max_share > 0.0),
            selector: Selector::new(&settings, G::LOWEST_VALUE),
            scratch: root.clone(),
            state: root,
            settings,
            key,
            ply: 0,
            root: NodeId(0),
            generation: 0,
            root_priors: Vec::new(),
            root_prior_bits: Vec::new(),
            visits_done: 0,
            depths: Depths::default(),
            halving: None,
            ties: Draws::new(key, 0, Purpose::Ties),
            symmetries: Draws::new(key, 0, Purpose::Symmetry),
            gathers: 0,
            pending: Vec::new(),
            pending_paths: Vec::new(),
            pending_orders: Vec::new(),
            unanswered: 0,
            path: Vec::new(),
            legal: Vec::new(),
            ordered: Vec::new(),
            unordered_priors: Vec::new(),
            counters: Counters::default(),
            next_compaction: Tree::next_compaction(0),
            solution: Solution::default(),
            fault: None,
        };
        search.reset_tree(None);
        search.begin_decision();
        search
    }

    /// Returns the state of the decision node.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// Returns why the rules failed in a state that the search came to since the game began ([`Game::fault`]). Such a state counts as a
    /// draw, so that the game says nothing from then on.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the number of actions played since the state the search began with.
    pub fn ply(&self) -> u32 {
        self.ply
    }

    /// Returns true while leaves wait for their evaluation.
    pub fn is_waiting(&self) -> bool {
        self.unanswered > 0
    }

    /// Returns true if this decision needs no more visits: all are done, the game is over, the decision is solved and
    /// [`Settings::stop_when_solved`] is set, or a [`Root::Gumbel`](crate::Root::Gumbel) has one legal action. If all visits went to
    /// proven losses while another action is open, the decision takes more visits than [`Settings::visits`], until one of those
    /// actions has a visit.
    pub fn is_decided(&self) -> bool {
        !self.is_waiting() && (self.is_over() || !self.lacks_visits())
    }

    /// Returns true if the decision needs more visits than those that are pending.
    pub(crate) fn lacks_visits(&self) -> bool {
        let is_short = self.visits_done + self.unanswered < self.settings.visits;
        let continues = is_short || (!self.is_waiting() && self.has_only_lost_visits());
        continues && !self.is_solved() && !self.is_forced()
    }

    /// Returns the number of visits of this decision that are backed up.
    pub fn visits_done(&self) -> u32 {
        self.visits_done
    }

    /// Changes how many visits a decision takes, at least 1. With a larger number a decided search continues; with a
    /// smaller one an unfinished search stops once its pending leaves are evaluated. A [`Root::Gumbel`](crate::Root::Gumbel) divides
    /// the number that is set at the first visit of a decision; its last candidates take the visits that are added later.
    pub fn set_visits(&mut self, visits: u32) {
        self.settings.visits = visits.max(1);
    }

    /// Returns counts since the game began, and the size of the tree.
    pub fn counters(&self) -> Counters {
        Counters {
            nodes: u64::from(self.tree.nodes()),
            bytes_used: 4 * self.tree.words() as u64,
            bytes: self.tree.bytes() as u64,
            ..self.counters
        }
    }

    /// Returns the depths of this decision's visits.
    pub fn depths(&self) -> Depths {
        self.depths
    }

    /// Limits this decision to the given actions, and restarts it with an empty tree. Actions that are not legal are
    /// ignored; if none is legal, nothing is limited. The limit ends with the next [`Search::advance`].
    pub fn restrict_root(&mut self, allowed: &[Action]) {
        self.abandon();
        self.solution = Solution::default();
        self.reset_tree(Some(allowed));
        self.begin_decision();
    }

    /// Plays `action` and begins the decision after it. Pending leaves are abandoned.
    ///
    /// # Errors
    /// [`IllegalAction`] by the game's rules; nothing has changed then.
    pub fn advance(&mut self, action: Action) -> Result<(), IllegalAction> {
        self.state.play(action)?;
        self.abandon();
        self.solution.advance(action);
        self.ply += 1;
        match self
            .child_by(action)
            .filter(|&child| self.settings.reuse != Reuse::Drop && !self.tree.is_cut(child))
        {
            Some(child) => {
                self.root = child;
                if self.tree.words() >= self.next_compaction || self.tree.is_full() {
                    self.compact();
                }
            }
            None => self.reset_tree(None),
        }
        self.begin_decision();
        Ok(())
    }

    /// Returns true if a solution ends this decision.
    pub(crate) fn is_solved(&self) -> bool {
        self.solution.is_proven && self.settings.stop_when_solved
    }

    pub(crate) fn is_over(&self) -> bool {
        self.tree.kind(self.root, self.generation) == Stage::Terminal
    }

    /// Activates the decision node and draws the noise in its priors, if the node is evaluated. A Gumbel root has no noise in its
    /// priors, and its statistics begin at zero.
    pub(crate) fn activate_root(&mut self) {
        if !matches!(
            self.tree.kind(self.root, self.generation),
            Stage::Gray | Stage::Active
        ) {
            return;
        }
        if !self.tree.add_statistics(self.root) {
            self.compact();
            // Those of the first node always fit.
            self.tree.add_statistics(self.root);
        }
        self.tree.activate(self.root, self.generation);
        self.root_priors.clear();
        self.root_priors.extend(self.tree.priors(self.root));
        if self.has_gumbel_root() {
            self.tree.clear_statistics(self.root);
        } else if self.settings.noise_fraction > 0.0 {
            let mut draws = Draws::new(self.key, self.ply, Purpose::Noise);
            let (fraction, total_alpha) = (self.settings.noise_fraction, self.settings.noise_total_alpha);
            noise::mix(fraction, total_alpha, &mut draws, &mut self.root_priors);
        }
        self.root_prior_bits.clear();
        self.root_prior_bits
            .extend(self.root_priors.iter().map(|prior| prior.to_bits()));
    }

    /// Reclaims the nodes that are not below the decision node.
    fn compact(&mut self) {
        self.root = self.tree.compact(self.root);
        self.counters.moved += u64::from(self.tree.nodes());
        self.next_compaction = Tree::next_compaction(self.tree.words());
    }

    /// Empties the tree and puts the decision node into it, with the legal actions among `allowed`.
    fn reset_tree(&mut self, allowed: Option<&[Action]>) {
        self.tree.clear();
        self.next_compaction = Tree::next_compaction(0);
        let node = match outcome_or_legal_actions(&self.state, &mut self.legal, &mut self.fault) {
            Some(outcome) => self.tree.push_terminal(outcome.value(), 0),
            None => {
                if let Some(allowed) =
                    allowed.filter(|allowed| self.legal.iter().any(|legal| allowed.contains(legal)))
                {
                    self.legal.retain(|legal| allowed.contains(legal));
                }
                self.tree
                    .push_empty(self.state.to_move(), &self.legal, self.state.least_actions_left())
            }
        };
        self.root = node.unwrap_or(NodeId(0));
    }

    /// Starts the decision at the present root.
    fn begin_decision(&mut self) {
        if self.generation == 0 || self.settings.reuse != Reuse::Keep {
            self.generation += 1;
        }
        self.visits_done = 0;
        self.depths = Depths::default();
        self.halving = None;
        self.ties = Draws::new(self.key, self.ply, Purpose::Ties);
        self.symmetries = Draws::new(self.key, self.ply, Purpose::Symmetry);
        self.root_priors.clear();
        self.activate_root();
        if self.seeks_proofs() {
            self.solution = Solution::default();
            self.solve_by_knowledge();
            self.solve_by_proof();
        }
    }

    fn child_by(&self, action: Action) -> Option<NodeId> {
        let edge = self.tree.actions(self.root).position(|legal| legal == action)?;
        self.tree.child(Step {
            node: self.root,
            edge: edge as u32,
        })
    }

    /// Returns the visits of each of the decision node's actions; none before the node is evaluated.
    pub(crate) fn root_visits(&self) -> &[u32] {
        if self.root_priors.is_empty() {
            &[]
        } else {
            self.tree.statistic(self.root, VISITS)
        }
    }
}

/// Counts since the game began, and the present size of the tree.
///
/// Unless leaves were abandoned, `visits + root_evaluations = evaluations + gray_visits + terminal_visits` holds whenever
/// no leaf is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Visits that were backed up.
    pub visits: u64,
    /// Evaluations that were requested.
    pub evaluations: u64,
    /// Evaluations of decision nodes, which are not visits. Part of `evaluations`.
    pub root_evaluations: u64,
    /// Visits of gray nodes, which have an evaluation from an earlier decision.
    pub gray_visits: u64,
    /// Visits of nodes where the game is over, or whose outcome is known or proven.
    pub terminal_visits: u64,
    /// Visits given up because they came to a pending leaf.
    pub collisions: u64,
    /// Leaves that were evaluated but not stored, because the tree has reached its memory limit.
    pub unstored: u64,
    /// Nodes that were moved to reclaim dropped ones.
    pub moved: u64,
    /// Nodes in memory now, including dropped ones that are not reclaimed yet.
    pub nodes: u64,
    /// Bytes that these nodes take.
    pub bytes_used: u64,
    /// Bytes allocated for nodes.
    pub bytes: u64,
}

/// Depths of a decision's visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depths {
    /// Number of visits.
    pub visits: u32,
    /// Number of actions on the paths of all visits.
    pub actions: u64,
    /// Number of actions on the longest path.
    pub deepest: u32,
}

impl Depths {
    pub(crate) fn add(&mut self, actions: usize) {
        self.visits += 1;
        self.actions += actions as u64;
        self.deepest = self.deepest.max(actions as u32);
    }

    /// Returns the mean number of actions on a path; 0 without visits.
    pub fn average(&self) -> f64 {
        self.actions as f64 / f64::from(self.visits.max(1))
    }
}

/// Returns the outcome of a game that is over in `state`, or else fills `legal`. A state without outcome and without legal
/// actions, which some rules have, counts as a draw. If there is none because the rules failed, `fault` says why.
pub(crate) fn outcome_or_legal_actions<G: Game>(
    state: &G,
    legal: &mut Vec<Action>,
    fault: &mut Option<String>,
) -> Option<Outcome> {
    let outcome = state.outcome();
    if outcome.is_some() {
        return outcome;
    }
    state.legal_actions(legal);
    legal.is_empty().then(|| {
        if let Some(reason) = state.fault() {
            *fault = Some(reason.into());
        }
        Outcome::Draw
    })
}
