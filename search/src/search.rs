//! The state machine: [`Search`], its decision node, budget and re-rooting.

use games::{Action, Game, IllegalAction, Outcome};

use crate::{
    counters::Counters,
    draws::{Draws, GameKey, Purpose},
    gather::Leaf,
    noise,
    principal_variation::Depths,
    puct::Selector,
    settings::{Reuse, Settings},
    solution::Solution,
    tree::{Kind, MOST_ACTIONS, NodeId, Step, Tree, VISITS},
};

/// The search of one game, from its first state on.
///
/// A decision takes `settings.traversals` traversals; [`Search::advance`] plays an action and begins the next.
/// Gathers and applies alternate: while leaves are out, nothing descends.
#[derive(Clone, Debug)]
pub struct Search<G: Game> {
    pub(crate) settings: Settings,
    pub(crate) key: GameKey,
    pub(crate) ply: u32,
    pub(crate) state: G,
    /// Where paths are replayed: nodes hold no states.
    pub(crate) scratch: G,
    pub(crate) tree: Tree,
    pub(crate) root: NodeId,
    /// Which decision's statistics count. Never 0.
    pub(crate) generation: u32,
    /// The decision node's priors with noise, once it is evaluated.
    pub(crate) root_priors: Vec<f32>,
    /// The same, as their bits.
    pub(crate) root_prior_bits: Vec<u32>,
    /// Traversals of this decision that are backed up.
    pub(crate) done: u32,
    pub(crate) depths: Depths,
    pub(crate) selector: Selector,
    pub(crate) ties: Draws,
    pub(crate) symmetries: Draws,
    pub(crate) gather: u64,
    /// The leaves that are out, in gather order, and their paths one behind the other.
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) paths: Vec<Step>,
    pub(crate) unanswered: u32,
    pub(crate) path: Vec<Step>,
    pub(crate) legal: Vec<Action>,
    pub(crate) counters: Counters,
    pub(crate) next_compaction: usize,
    pub(crate) solution: Solution,
}

impl<G: Game> Search<G> {
    /// Begins with a decision at `root`. Out-of-range settings are not refused here: see [`Settings::check`].
    pub fn new(root: G, settings: Settings, key: GameKey) -> Self {
        const { assert!(G::ACTIONS <= MOST_ACTIONS, "the tree packs actions") };
        let mut search = Self {
            tree: Tree::new(&settings, G::PLAYERS == 1 && settings.max_share > 0.0),
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
            done: 0,
            depths: Depths::default(),
            ties: Draws::new(key, 0, Purpose::Ties),
            symmetries: Draws::new(key, 0, Purpose::Symmetry),
            gather: 0,
            leaves: Vec::new(),
            paths: Vec::new(),
            unanswered: 0,
            path: Vec::new(),
            legal: Vec::new(),
            counters: Counters::default(),
            next_compaction: Tree::next_compaction(0),
            solution: Solution::default(),
        };
        search.plant();
        search.begin();
        search
    }

    /// The decision node's state.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Actions played since the state the search began with.
    pub fn ply(&self) -> u32 {
        self.ply
    }

    /// Whether leaves are out.
    pub fn is_waiting(&self) -> bool {
        self.unanswered > 0
    }

    /// Whether this decision's traversals are done, or nothing is to be decided: the game is over, or the shortest
    /// solution is proven and [`Settings::stop_when_solved`] is set.
    pub fn is_decided(&self) -> bool {
        let is_done = || self.done >= self.settings.traversals || self.solution.is_proven;
        !self.is_waiting() && (self.is_over() || is_done())
    }

    /// What was done since the game began, and the tree's size.
    pub fn counters(&self) -> Counters {
        Counters {
            nodes: u64::from(self.tree.nodes()),
            bytes_used: 4 * self.tree.words() as u64,
            bytes: self.tree.bytes() as u64,
            ..self.counters
        }
    }

    /// Plays `action` and begins the decision after it. Leaves that are out are abandoned.
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
            .filter(|_| self.settings.reuse != Reuse::Drop)
        {
            Some(child) => {
                self.root = child;
                if self.tree.words() >= self.next_compaction || self.tree.is_full() {
                    self.root = self.tree.compact(child);
                    self.counters.moved += u64::from(self.tree.nodes());
                    self.next_compaction = Tree::next_compaction(self.tree.words());
                }
            }
            None => self.plant(),
        }
        self.begin();
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.tree.kind(self.root, self.generation) == Kind::Terminal
    }

    /// Draws the decision node's priors, once it is evaluated, and opens it.
    pub(crate) fn open_root(&mut self) {
        if !matches!(
            self.tree.kind(self.root, self.generation),
            Kind::Gray | Kind::Active
        ) {
            return;
        }
        self.tree.activate(self.root, self.generation);
        self.root_priors.clear();
        self.root_priors.extend(self.tree.priors(self.root));
        if let Some(settings) = self.settings.noise {
            let mut draws = Draws::new(self.key, self.ply, Purpose::Noise);
            noise::mix(settings, &mut draws, &mut self.root_priors);
        }
        self.root_prior_bits.clear();
        self.root_prior_bits
            .extend(self.root_priors.iter().map(|prior| prior.to_bits()));
    }

    /// Starts an empty tree at the decision node's state.
    fn plant(&mut self) {
        self.tree.clear();
        self.next_compaction = Tree::next_compaction(0);
        let node = match end_of(&self.state, &mut self.legal) {
            Some(outcome) => self.tree.push_terminal(outcome.value()),
            None => self
                .tree
                .push_empty(self.state.to_move(), &self.legal, self.state.least_actions_left()),
        };
        self.root = node.unwrap_or(NodeId(0));
    }

    /// Starts the decision at the present root.
    fn begin(&mut self) {
        if self.generation == 0 || self.settings.reuse != Reuse::Keep {
            self.generation += 1;
        }
        self.done = 0;
        self.depths = Depths::default();
        self.ties = Draws::new(self.key, self.ply, Purpose::Ties);
        self.symmetries = Draws::new(self.key, self.ply, Purpose::Symmetry);
        self.root_priors.clear();
        self.open_root();
    }

    fn child_by(&self, action: Action) -> Option<NodeId> {
        let edge = self.tree.actions(self.root).position(|legal| legal == action)?;
        self.tree.child(Step {
            node: self.root,
            edge: edge as u32,
        })
    }

    /// Visits of each of the decision node's actions.
    pub(crate) fn root_visits(&self) -> &[u32] {
        if self.root_priors.is_empty() {
            &[]
        } else {
            self.tree.column(self.root, VISITS)
        }
    }
}

/// How the game ended in this state, or its legal actions. A player without an action in a game that goes on
/// (as some rules have it) has ended it as a draw, as far as the search is concerned.
pub(crate) fn end_of<G: Game>(state: &G, legal: &mut Vec<Action>) -> Option<Outcome> {
    let outcome = state.outcome();
    if outcome.is_some() {
        return outcome;
    }
    state.legal_actions(legal);
    legal.is_empty().then_some(Outcome::Draw)
}
