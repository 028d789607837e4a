//! Nodes and edge statistics in one growing block of 32-bit words: [`Tree`].
//!
//! A node is a header of five words followed by two columns, one entry for each legal action. When a visit first goes through
//! one of its edges, the node gets statistics: a block with a header of two words and three or four columns.
//!
//! ```text
//! bound·kind·mover·proof·edges | generation | ΣN | value | statistics || P… | action·virtual losses…
//! tag·edges | link || W… | N… | child… (| max…)
//! ```
//!
//! Most nodes are leaves that were visited once, so they never get statistics, which are more than half of a node. Each column is
//! contiguous over the node's edges. Nodes and statistics are only appended, so statistics lie behind their node, and a child behind
//! the statistics that name it; [`Tree::compact`] relies on this to reclaim dropped nodes in one
//! forward pass. A re-root keeps `P` and the value; `W` and `N` belong to one generation, which is one decision.
//!
//! # Virtual losses
//! They keep the visits of one search off the paths of its pending leaves.
//! Each pending leaf adds one virtual loss to every edge of its path. Selection treats it as a visit that was lost by
//! whoever chose the edge: with `L` virtual losses, `W - L` and `N + L` replace `W` and `N`, and `ΣN` includes them. (In
//! a game whose values cannot be below 0, `W` and `N + L`; see [`Game::LOWEST_VALUE`](games::Game::LOWEST_VALUE).) Virtual
//! losses are counted apart and never mixed into `W`, so rounding cannot leave any behind. They share a word with the
//! edge's action.
//!
//! # Compaction
//! Compaction: reclaims the nodes that a re-root dropped, in place, in one forward pass.
//!
//! A re-root only moves the decision node. Dropped nodes stay until the tree has grown to twice the size that the last pass
//! left, plus a constant. So at least `n / 2` words were written since the last pass when a pass reads `n` words, a game
//! moves no more nodes than it creates, and the tree holds at most twice what the last pass kept plus what one decision
//! adds. A decision that found the tree full is followed by a pass as well.

use games::{Action, FirstValue, MoverValue, Player};

use crate::settings::Settings;

/// A node, identified by the index of its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(pub u32);

/// One edge of a path through the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub node: NodeId,
    pub edge: u32,
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The node waits for its evaluation.
    Empty,
    /// The node has an evaluation, and no visits in this decision: its statistics belong to an earlier one.
    Gray,
    /// The node has an evaluation and counts visits of this decision.
    Active,
    /// The game is over here, or its outcome is known without a search.
    Terminal,
}

/// Number of words of a node before its first column.
pub(crate) const HEADER: usize = 5;
/// Place in the header of the index of the node's statistics.
pub(crate) const STATISTICS: usize = 4;
/// Number of words of statistics before their first column.
pub(crate) const BLOCK_HEADER: usize = 2;
/// Place in the header of statistics of the word that `compact` uses.
pub(crate) const LINK: usize = 1;

/// Column of a node: the priors `P`.
pub(crate) const PRIOR: usize = 0;
/// Column of a node: actions and virtual losses.
pub(crate) const ACTION: usize = 1;
/// Number of columns of a node.
pub(crate) const COLUMNS: usize = 2;

/// Column of statistics: `W`.
pub(crate) const TOTAL: Statistic = Statistic(0);
/// Column of statistics: `N`.
pub(crate) const VISITS: Statistic = Statistic(1);
/// Column of statistics: the indices of the children.
pub(crate) const CHILD: Statistic = Statistic(2);
/// Column of statistics: the largest value of the visits through an edge, in trees that keep it.
pub(crate) const BEST: Statistic = Statistic(3);

/// Number of a column of statistics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statistic(pub usize);

/// Bits of an action in its word, which holds the edge's virtual losses in the other 12 bits
/// (see the top of this file). [`Search::new`](crate::Search::new) checks that the game's actions fit.
pub(crate) const ACTION_BITS: u32 = 20;
/// Maximum number of actions that a game may have.
pub(crate) const MAX_ACTIONS: u32 = 1 << ACTION_BITS;
/// Maximum number of virtual losses of one edge.
pub(crate) const MAX_VIRTUAL_LOSSES: u32 = (1 << (32 - ACTION_BITS)) - 1;

/// Entry of the child column where the edge has no node yet.
pub(crate) const NO_CHILD: u32 = u32::MAX;
/// Entry of the header of a node without statistics.
pub(crate) const NO_STATISTICS: u32 = u32::MAX;
/// Generation that no decision has: nodes that carry it are gray or empty.
pub(crate) const NO_GENERATION: u32 = 0;
/// Bit above all generations, which `compact` uses as a mark.
pub(crate) const MARK: u32 = 1 << 31;

/// Returns the action in an entry of the action column.
pub(crate) const fn action_of(word: u32) -> Action {
    word & (MAX_ACTIONS - 1)
}

/// Columns of one node that selection reads, all of one length.
pub(crate) struct Statistics<'a> {
    pub priors: &'a [u32],
    pub totals: &'a [u32],
    pub visits: &'a [u32],
    pub actions: &'a [u32],
    /// Empty in trees that do not keep it.
    pub best: &'a [u32],
}

impl<'a> Statistics<'a> {
    /// Returns `priors` if there is one for each edge, else the node's own.
    pub fn priors_or(&self, priors: &'a [u32]) -> &'a [u32] {
        if priors.len() == self.priors.len() {
            priors
        } else {
            self.priors
        }
    }
}

const EDGE_BITS: u32 = 0x001f_ffff;
/// Bit of a node with a child whose outcome is [proven](crate::proof).
pub(crate) const NEAR_PROOF: u32 = 1 << 21;
/// Lowest of the two bits with the proven outcome of a node.
pub(crate) const PROOF: u32 = 22;
const SECOND: u32 = 1 << 24;
const EVALUATED: u32 = 1 << 25;
const TERMINAL: u32 = 1 << 26;
/// Bits that only the first word of statistics has together.
const IS_STATISTICS: u32 = EVALUATED | TERMINAL;
/// The bits from here up hold a lower bound on the number of actions to a solution.
const BOUND: u32 = 27;

/// The nodes of one search tree.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(super) words: Vec<u32>,
    pub(super) nodes: u32,
    /// Maximum number of words; below [`MARK`].
    limit: usize,
    pub(super) is_full: bool,
    /// Number of columns of statistics: 3, or 4 with [`BEST`].
    columns: usize,
    /// At least as many zeros as a node has edges: the visits and totals of nodes without statistics.
    zeros: Vec<u32>,
}

impl Tree {
    /// Returns an empty tree, which keeps the best value of each edge if `keeps_best` is set.
    pub(crate) fn new(settings: &Settings, keeps_best: bool) -> Self {
        Self {
            columns: 3 + usize::from(keeps_best),
            zeros: Vec::new(),
            words: Vec::new(),
            nodes: 0,
            limit: (settings.tree_bytes / 4).min(MARK as usize - 1),
            is_full: false,
        }
    }

    /// Removes all nodes and keeps the memory.
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

    /// Appends a node without evaluation; returns `None` if the tree is full. The first node always fits.
    /// `least` is a lower bound on the number of actions to a solution.
    pub(crate) fn push_empty(&mut self, mover: Player, legal: &[Action], least: u32) -> Option<NodeId> {
        let edges = legal.len();
        let start = self.words.len();
        let end = start + HEADER + COLUMNS * edges;
        if edges > EDGE_BITS as usize || !self.has_room(start, end) {
            self.is_full = true;
            return None;
        }
        if self.zeros.len() < edges {
            self.zeros.resize(edges, 0);
        }
        let side = if mover == Player::Second { SECOND } else { 0 };
        let bound = least.min(u32::MAX >> BOUND) << BOUND;
        self.words
            .extend([edges as u32 | side | bound, NO_GENERATION, 0, 0, NO_STATISTICS]);
        self.words.resize(start + HEADER + ACTION * edges, 0);
        self.words.extend_from_slice(legal);
        self.nodes += 1;
        Some(NodeId(start as u32))
    }

    /// Gives a node statistics if it has none. Returns false if the tree is full. The first node's always fit.
    pub(crate) fn add_statistics(&mut self, node: NodeId) -> bool {
        let place = node.0 as usize + STATISTICS;
        if self.words[place] != NO_STATISTICS {
            return true;
        }
        let (edges, start) = (self.edges(node), self.words.len());
        let end = start + BLOCK_HEADER + self.columns * edges;
        if !self.has_room(node.0 as usize, end) {
            self.is_full = true;
            return false;
        }
        self.words[place] = start as u32;
        self.words.extend([edges as u32 | IS_STATISTICS, 0]);
        self.words.resize(start + BLOCK_HEADER + CHILD.0 * edges, 0);
        self.words
            .resize(start + BLOCK_HEADER + (CHILD.0 + 1) * edges, NO_CHILD);
        self.words.resize(end, 0);
        true
    }

    /// Returns the index of the first word of the columns of a node's statistics.
    fn statistics_of(&self, node: NodeId) -> Option<usize> {
        let start = self.words[node.0 as usize + STATISTICS];
        (start != NO_STATISTICS).then_some(start as usize + BLOCK_HEADER)
    }

    /// True if the tree keeps the best value of each edge.
    pub(crate) fn keeps_best(&self) -> bool {
        self.columns > BEST.0
    }

    /// Returns the number of words of the node or the statistics at `at`, and true for statistics.
    pub(crate) fn size_at(&self, at: usize) -> (usize, bool) {
        let (first, edges) = (self.words[at], self.edges(NodeId(at as u32)));
        match first & IS_STATISTICS == IS_STATISTICS {
            true => (BLOCK_HEADER + self.columns * edges, true),
            false => (HEADER + COLUMNS * edges, false),
        }
    }

    /// Appends a node without edges, where the game is over or its value is known; returns `None` if the tree is full.
    /// `actions` is the number of actions for which the game continues.
    pub(crate) fn push_terminal(&mut self, value: FirstValue, actions: u32) -> Option<NodeId> {
        let start = self.words.len();
        if !self.has_room(start, start + HEADER) {
            self.is_full = true;
            return None;
        }
        let value = value.get().to_bits();
        self.words
            .extend([TERMINAL, NO_GENERATION, actions, value, NO_STATISTICS]);
        self.nodes += 1;
        Some(NodeId(start as u32))
    }

    pub(crate) fn kind(&self, node: NodeId, generation: u32) -> Stage {
        let at = node.0 as usize;
        match self.words[at] & (EVALUATED | TERMINAL) {
            0 => Stage::Empty,
            EVALUATED if self.words[at + 1] == generation => Stage::Active,
            EVALUATED => Stage::Gray,
            _ => Stage::Terminal,
        }
    }

    /// Returns the node's lower bound on the number of actions to a solution, at most what five bits hold.
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

    /// Returns `ΣN` over the node's edges, virtual losses included.
    pub(crate) fn visit_sum(&self, node: NodeId) -> u32 {
        self.words[node.0 as usize + 2]
    }

    /// Returns the evaluation of a gray or active node.
    pub(crate) fn evaluation(&self, node: NodeId) -> MoverValue {
        MoverValue::new(f32::from_bits(self.words[node.0 as usize + 3]))
    }

    /// Returns the value of a terminal node.
    pub(crate) fn result(&self, node: NodeId) -> FirstValue {
        FirstValue::new(f32::from_bits(self.words[node.0 as usize + 3]))
    }

    /// Returns one column of a node: [`PRIOR`] or [`ACTION`].
    pub(crate) fn column(&self, node: NodeId, column: usize) -> &[u32] {
        let edges = self.edges(node);
        let start = node.0 as usize + HEADER + column * edges;
        &self.words[start..start + edges]
    }

    /// Returns [`TOTAL`], [`VISITS`] or [`BEST`] of all the node's edges; zeros if the node has no statistics.
    pub(crate) fn statistic(&self, node: NodeId, column: Statistic) -> &[u32] {
        let edges = self.edges(node);
        match self.statistics_of(node) {
            Some(start) => &self.words[start + column.0 * edges..][..edges],
            None => &self.zeros[..edges],
        }
    }

    pub(crate) fn statistics(&self, node: NodeId) -> Statistics<'_> {
        let edges = self.edges(node);
        let start = node.0 as usize + HEADER;
        let (priors, actions) = self.words[start..start + COLUMNS * edges].split_at(edges);
        let (totals, visits, best) = match self.statistics_of(node) {
            Some(start) => {
                let (totals, rest) = self.words[start..start + self.columns * edges].split_at(edges);
                let (visits, rest) = rest.split_at(edges);
                (totals, visits, &rest[edges..])
            }
            None => {
                let zeros = &self.zeros[..edges];
                (zeros, zeros, if self.keeps_best() { zeros } else { &[] })
            }
        };
        Statistics {
            priors,
            totals,
            visits,
            actions,
            best,
        }
    }

    /// Returns `W` of all the node's edges.
    pub(crate) fn totals(&self, node: NodeId) -> impl Iterator<Item = f32> {
        self.statistic(node, TOTAL)
            .iter()
            .map(|&word| f32::from_bits(word))
    }

    pub(crate) fn priors(&self, node: NodeId) -> impl Iterator<Item = f32> {
        self.column(node, PRIOR).iter().map(|&word| f32::from_bits(word))
    }

    /// Returns the node's actions in the order of its edges; none where the game is over.
    pub(crate) fn actions(&self, node: NodeId) -> impl Iterator<Item = Action> {
        self.column(node, ACTION).iter().map(|&word| action_of(word))
    }

    /// Returns true if a leaf found no room since the last compaction.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn child(&self, step: Step) -> Option<NodeId> {
        let child = self.words[self.place(step, CHILD)?];
        (child != NO_CHILD).then_some(NodeId(child))
    }

    /// Sets the child of an edge of a node that has statistics.
    pub(crate) fn set_child(&mut self, step: Step, child: NodeId) {
        if let Some(place) = self.place(step, CHILD) {
            self.words[place] = child.0;
        }
    }

    pub(crate) fn action(&self, step: Step) -> Action {
        action_of(self.words[self.action_place(step)])
    }

    /// Stores the evaluation of an empty node, which makes it gray.
    pub(crate) fn evaluate(&mut self, node: NodeId, priors: &[f32], value: MoverValue) {
        let at = node.0 as usize;
        self.words[at] |= EVALUATED;
        self.words[at + 3] = value.get().to_bits();
        for (word, prior) in self.words[at + HEADER..].iter_mut().zip(priors) {
            // Selection orders priors by their bits, so a negative zero must become a positive one.
            *word = (prior + 0.0).to_bits();
        }
    }

    /// Makes a gray node active: resets statistics of an earlier generation.
    pub(crate) fn activate(&mut self, node: NodeId, generation: u32) {
        let at = node.0 as usize;
        if self.words[at + 1] == generation {
            return;
        }
        self.words[at + 1] = generation;
        self.clear_statistics(node);
    }

    /// Resets the visits and the values of a node's edges.
    pub(crate) fn clear_statistics(&mut self, node: NodeId) {
        let at = node.0 as usize;
        // The columns of a node without visits are zero already.
        if self.words[at + 2] != 0 {
            self.words[at + 2] = 0;
            let edges = self.edges(node);
            if let Some(start) = self.statistics_of(node) {
                self.words[start + TOTAL.0 * edges..start + CHILD.0 * edges].fill(0);
            }
        }
    }

    /// Grows the memory to at least `end` words, doubling it within the limit. Returns false if that is beyond the limit, unless the
    /// words belong to the node at index 0.
    fn has_room(&mut self, node: usize, end: usize) -> bool {
        if end > self.limit && node > 0 {
            return false;
        }
        if end > self.words.capacity() {
            let capacity = (2 * end).max(1024).min(self.limit.max(end));
            self.words.reserve_exact(capacity - self.words.len());
        }
        true
    }

    /// Returns `ΣN` of a node for changing it.
    pub(crate) fn visit_sum_mut(&mut self, node: NodeId) -> &mut u32 {
        &mut self.words[node.0 as usize + 2]
    }

    /// Returns the index of the word of one statistic of one edge. `None` if the node has no statistics.
    pub(crate) fn place(&self, step: Step, column: Statistic) -> Option<usize> {
        let start = self.statistics_of(step.node)?;
        Some(start + column.0 * self.edges(step.node) + step.edge as usize)
    }

    /// Returns the index of the word with the action and the virtual losses of one edge.
    pub(crate) fn action_place(&self, step: Step) -> usize {
        step.node.0 as usize + HEADER + ACTION * self.edges(step.node) + step.edge as usize
    }
}

/// Returns the virtual losses of an edge, from its entry in the action column.
pub(crate) const fn virtual_losses(word: u32) -> u32 {
    word >> ACTION_BITS
}

impl Tree {
    /// Adds one virtual loss to each edge of the path of a leaf that was just requested.
    pub(crate) fn add_virtual_loss(&mut self, path: &[Step]) {
        for &step in path {
            let place = self.action_place(step);
            self.words[place] += MAX_ACTIONS;
            *self.visit_sum_mut(step.node) += 1;
        }
    }

    /// Removes one virtual loss from each edge of a path, or of several paths one behind the other.
    pub(crate) fn remove_virtual_loss(&mut self, path: &[Step]) {
        for &step in path {
            let place = self.action_place(step);
            self.words[place] -= MAX_ACTIONS;
            *self.visit_sum_mut(step.node) -= 1;
        }
    }
}

/// Number of words below which no pass is made.
const SMALL: usize = 1 << 14;

impl Tree {
    /// Returns the size, in words, from which the next re-root calls [`Tree::compact`] if the last pass left `kept` words.
    pub(crate) fn next_compaction(kept: usize) -> usize {
        2 * kept + SMALL
    }

    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }

    /// Keeps `root`, which becomes the first node, and the nodes below it. Returns the new root.
    ///
    /// Statistics lie behind their node and children behind the statistics that name them, so the word that holds an index moves
    /// before what it names. It is then exchanged with a word there (the generation of a node, the link of statistics), which holds the
    /// place of the index, with [`MARK`] set, until the rest moves.
    pub(crate) fn compact(&mut self, root: NodeId) -> NodeId {
        let end = self.words.len();
        let start = root.0 as usize;
        let (mut read, mut write, mut kept) = (start, 0, 0);
        while read < end {
            let (size, is_statistics) = self.size_at(read);
            let link = self.words[read + LINK];
            if read == start || link & MARK != 0 {
                if link & MARK != 0 {
                    let slot = (link & !MARK) as usize;
                    self.words[read + LINK] = self.words[slot];
                    self.words[slot] = write as u32;
                }
                self.words.copy_within(read..read + size, write);
                if is_statistics {
                    let edges = self.edges(NodeId(write as u32));
                    let children = write + BLOCK_HEADER + CHILD.0 * edges;
                    (children..children + edges).for_each(|slot| self.exchange(slot, NO_CHILD));
                } else {
                    self.exchange(write + STATISTICS, NO_STATISTICS);
                    kept += 1;
                }
                write += size;
            }
            read += size;
        }
        self.words.truncate(write);
        self.nodes = kept;
        self.is_full = false;
        NodeId(0)
    }

    /// Exchanges the index in `slot` with the word [`LINK`] of what it names, unless it is `none`.
    fn exchange(&mut self, slot: usize, none: u32) {
        let named = self.words[slot];
        if named != none {
            let link = named as usize + LINK;
            self.words[slot] = self.words[link];
            self.words[link] = slot as u32 | MARK;
        }
    }
}
