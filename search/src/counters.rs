//! Counts of a search's visits and evaluations ([`Counters`]), and the depths of its visits ([`Depths`]).

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
