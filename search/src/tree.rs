//! Nodes and edge statistics in one growing block of 32-bit words: [`Tree`].
//!
//! A node is a header of four words followed by five columns, one entry for each legal action:
//!
//! ```text
//! bound·kind·mover·edges | generation | ΣN | value || P… | W… | N… | child… | action·out… (| max…)
//! ```
//!
//! So everything a traversal touches of a node lies together, and each statistic is contiguous
//! over the node's edges. Nodes are only ever appended: a child lies behind its parent, which is what
//! lets [`compact`](crate::compact) reclaim dropped ones in one forward pass.
//! `P` and the value are kept by a re-root; `W` and `N` belong to one generation.

use games::{Action, FirstValue, MoverValue, Player};

use crate::settings::Settings;

/// A node, by the place of its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub u32);

/// One edge of a traversal's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub node: NodeId,
    pub edge: u32,
}

/// What a traversal finds when it comes to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Without evaluation.
    Empty,
    /// Evaluated, but its statistics belong to an earlier decision.
    Gray,
    /// Evaluated, with statistics of this decision.
    Active,
    /// The game is over here.
    Terminal,
}

/// Words before the first column.
pub(crate) const HEADER: usize = 4;
/// Columns, in their order.
pub(crate) const PRIOR: usize = 0;
pub(crate) const TOTAL: usize = 1;
pub(crate) const VISITS: usize = 2;
pub(crate) const CHILD: usize = 3;
pub(crate) const ACTION: usize = 4;
/// The columns that every node has.
pub(crate) const COLUMNS: usize = 5;
/// The greatest value of the traversals through an edge, where that is kept.
pub(crate) const BEST: usize = 5;

/// An action and the number of leaves that are out below its edge share a word: 20 bits for the former
/// (no game has more actions; see [`Search::new`](crate::Search::new)), 12 for the latter.
const ACTION_BITS: u32 = 20;
/// Actions a game may have.
pub(crate) const MOST_ACTIONS: u32 = 1 << ACTION_BITS;
/// Leaves that may be out at once.
pub(crate) const MOST_OUT: u32 = (1 << (32 - ACTION_BITS)) - 1;

/// In a child column: nobody has been there.
pub(crate) const NO_CHILD: u32 = u32::MAX;
/// A generation no decision ever has, so nodes that carry it are gray (or empty).
pub(crate) const NO_GENERATION: u32 = 0;
/// Generations stay below this bit, which `compact` borrows.
pub(crate) const MARK: u32 = 1 << 31;

/// The action in an entry of the action column.
pub(crate) const fn action_of(word: u32) -> Action {
    word & (MOST_ACTIONS - 1)
}

/// The leaves that are out below an edge, from its entry in the action column.
pub(crate) const fn leaves_out(word: u32) -> u32 {
    word >> ACTION_BITS
}

/// What selection needs of a node's edges; all of one length.
pub(crate) struct Statistics<'a> {
    pub priors: &'a [u32],
    pub totals: &'a [u32],
    pub visits: &'a [u32],
    pub actions: &'a [u32],
    /// Empty where it is not kept.
    pub best: &'a [u32],
}

const EDGE_BITS: u32 = 0x00ff_ffff;
const SECOND: u32 = 1 << 24;
const EVALUATED: u32 = 1 << 25;
const TERMINAL: u32 = 1 << 26;
/// The bits from here up hold a lower bound of the actions to a solution.
const BOUND: u32 = 27;

/// The nodes of one search tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(super) words: Vec<u32>,
    pub(super) nodes: u32,
    /// Largest number of words; below [`MARK`].
    limit: usize,
    pub(super) is_full: bool,
    /// [`COLUMNS`], or one more.
    pub(super) columns: usize,
}

impl Tree {
    /// An tree that keeps the best value of each edge if `keeps_best`.
    pub(crate) fn new(settings: &Settings, keeps_best: bool) -> Self {
        Self {
            columns: COLUMNS + usize::from(keeps_best),
            words: Vec::new(),
            nodes: 0,
            limit: (settings.tree_bytes / 4).min(MARK as usize - 1),
            is_full: false,
        }
    }

    /// Forgets all nodes; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.nodes = 0;
        self.is_full = false;
    }

    pub(crate) fn nodes(&self) -> u32 {
        self.nodes
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.capacity() * 4
    }

    /// Appends a node without evaluation; `None` where there is no room. The first node always has room.
    /// `least` is a number of actions below which there is no solution from here.
    pub(crate) fn push_empty(&mut self, mover: Player, legal: &[Action], least: u32) -> Option<NodeId> {
        let edges = legal.len();
        let start = self.words.len();
        let end = start + HEADER + self.columns * edges;
        if (end > self.limit && start > 0) || edges > EDGE_BITS as usize {
            self.is_full = true;
            return None;
        }
        self.make_room(end);
        let side = if mover == Player::Second { SECOND } else { 0 };
        let bound = least.min(u32::MAX >> BOUND) << BOUND;
        self.words
            .extend([edges as u32 | side | bound, NO_GENERATION, 0, 0]);
        self.words.resize(start + HEADER + CHILD * edges, 0);
        self.words.resize(start + HEADER + ACTION * edges, NO_CHILD);
        self.words.extend_from_slice(legal);
        self.words.resize(end, 0);
        self.nodes += 1;
        Some(NodeId(start as u32))
    }

    /// Appends a node where the game is over; `None` where there is no room.
    pub(crate) fn push_terminal(&mut self, value: FirstValue) -> Option<NodeId> {
        let start = self.words.len();
        if start + HEADER > self.limit && start > 0 {
            self.is_full = true;
            return None;
        }
        self.make_room(start + HEADER);
        self.words
            .extend([TERMINAL, NO_GENERATION, 0, value.get().to_bits()]);
        self.nodes += 1;
        Some(NodeId(start as u32))
    }

    pub(crate) fn kind(&self, node: NodeId, generation: u32) -> Kind {
        let at = node.0 as usize;
        match self.words[at] & (EVALUATED | TERMINAL) {
            0 => Kind::Empty,
            EVALUATED if self.words[at + 1] == generation => Kind::Active,
            EVALUATED => Kind::Gray,
            _ => Kind::Terminal,
        }
    }

    /// The lower bound that the node was made with (of that, what five bits hold).
    pub(crate) fn least(&self, node: NodeId) -> u32 {
        self.words[node.0 as usize] >> BOUND
    }

    pub(crate) fn edges(&self, node: NodeId) -> usize {
        (self.words[node.0 as usize] & EDGE_BITS) as usize
    }

    pub(crate) fn mover(&self, node: NodeId) -> Player {
        if self.words[node.0 as usize] & SECOND == 0 {
            Player::First
        } else {
            Player::Second
        }
    }

    /// `ΣN` over the node's edges, leaves that are out included.
    pub(crate) fn sum_of_visits(&self, node: NodeId) -> u32 {
        self.words[node.0 as usize + 2]
    }

    /// The evaluation of a gray or active node.
    pub(crate) fn evaluation(&self, node: NodeId) -> MoverValue {
        MoverValue::new(f32::from_bits(self.words[node.0 as usize + 3]))
    }

    /// The value of a terminal node.
    pub(crate) fn result(&self, node: NodeId) -> FirstValue {
        FirstValue::new(f32::from_bits(self.words[node.0 as usize + 3]))
    }

    /// One statistic of all the node's edges.
    pub(crate) fn column(&self, node: NodeId, column: usize) -> &[u32] {
        let edges = self.edges(node);
        let start = node.0 as usize + HEADER + column * edges;
        &self.words[start..start + edges]
    }

    pub(crate) fn statistics(&self, node: NodeId) -> Statistics<'_> {
        let edges = self.edges(node);
        let start = node.0 as usize + HEADER;
        let (priors, rest) = self.words[start..start + self.columns * edges].split_at(edges);
        let (totals, rest) = rest.split_at(edges);
        let (visits, rest) = rest.split_at(edges);
        let (actions, best) = rest[edges..].split_at(edges);
        Statistics {
            priors,
            totals,
            visits,
            actions,
            best,
        }
    }

    /// One statistic that is a float, of all the node's edges.
    pub(crate) fn floats(&self, node: NodeId, column: usize) -> impl Iterator<Item = f32> {
        self.column(node, column).iter().map(|&word| f32::from_bits(word))
    }

    pub(crate) fn priors(&self, node: NodeId) -> impl Iterator<Item = f32> {
        self.floats(node, PRIOR)
    }

    /// The node's actions, in the order of its edges; none where the game is over.
    pub(crate) fn actions(&self, node: NodeId) -> impl Iterator<Item = Action> {
        self.column(node, ACTION).iter().map(|&word| action_of(word))
    }

    /// Whether a leaf found no room since the last compaction.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn child(&self, step: Step) -> Option<NodeId> {
        let child = self.words[self.place(step, CHILD)];
        (child != NO_CHILD).then_some(NodeId(child))
    }

    pub(crate) fn set_child(&mut self, step: Step, child: NodeId) {
        let place = self.place(step, CHILD);
        self.words[place] = child.0;
    }

    pub(crate) fn action(&self, step: Step) -> Action {
        action_of(self.words[self.place(step, ACTION)])
    }

    /// Gives an empty node its evaluation. It is gray then.
    pub(crate) fn evaluate(&mut self, node: NodeId, priors: &[f32], value: MoverValue) {
        let at = node.0 as usize;
        self.words[at] |= EVALUATED;
        self.words[at + 3] = value.get().to_bits();
        for (word, prior) in self.words[at + HEADER..].iter_mut().zip(priors) {
            // Selection orders priors by their bits: there must be no negative zero.
            *word = (prior + 0.0).to_bits();
        }
    }

    /// Makes a gray node active: statistics of an earlier generation are reset.
    pub(crate) fn activate(&mut self, node: NodeId, generation: u32) {
        let at = node.0 as usize;
        if self.words[at + 1] == generation {
            return;
        }
        self.words[at + 1] = generation;
        // Without a visit, the columns are zero already.
        if self.words[at + 2] != 0 {
            self.words[at + 2] = 0;
            let edges = self.edges(node);
            let start = at + HEADER;
            self.words[start + TOTAL * edges..start + CHILD * edges].fill(0);
        }
    }

    /// A leaf below these edges went out.
    pub(crate) fn send_out(&mut self, path: &[Step]) {
        for &step in path {
            let place = self.place(step, ACTION);
            self.words[place] += MOST_ACTIONS;
            self.words[step.node.0 as usize + 2] += 1;
        }
    }

    /// A leaf below these edges is out no longer.
    pub(crate) fn take_back(&mut self, path: &[Step]) {
        for &step in path {
            let place = self.place(step, ACTION);
            self.words[place] -= MOST_ACTIONS;
            self.words[step.node.0 as usize + 2] -= 1;
        }
    }

    /// One traversal: its leaf's value goes into every edge of its path, as the player who chose the edge
    /// sees it, discounted once for each action between.
    pub(crate) fn back_up(&mut self, path: &[Step], leaf: FirstValue, discount: f32) {
        let mut value = leaf;
        for &step in path.iter().rev() {
            value = value.discounted(discount);
            let seen = value.seen_by(self.mover(step.node));
            let total = self.place(step, TOTAL);
            self.words[total] = (f32::from_bits(self.words[total]) + seen.get()).to_bits();
            let visits = self.place(step, VISITS);
            if self.columns > COLUMNS {
                let best = self.place(step, BEST);
                let before = f32::from_bits(self.words[best]);
                let is_first = self.words[visits] == 0;
                self.words[best] = if is_first {
                    seen.get()
                } else {
                    before.max(seen.get())
                }
                .to_bits();
            }
            self.words[visits] += 1;
            self.words[step.node.0 as usize + 2] += 1;
        }
    }

    /// Doubles the memory as often as `end` words need it, but never beyond the limit (for the first node: what it needs).
    fn make_room(&mut self, end: usize) {
        if end > self.words.capacity() {
            let capacity = (2 * end).max(1024).min(self.limit.max(end));
            self.words.reserve_exact(capacity - self.words.len());
        }
    }

    fn place(&self, step: Step, column: usize) -> usize {
        step.node.0 as usize + HEADER + column * self.edges(step.node) + step.edge as usize
    }
}
