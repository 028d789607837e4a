//! What a search has done so far, told apart so that no figure can pass for another: [`Counters`].

/// Counts since the game began, and the tree's present size.
///
/// Unless leaves were abandoned, `visits + root_evaluations = evaluations + gray_visits + terminal_visits`
/// whenever no leaf is out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Traversals that were backed up.
    pub visits: u64,
    /// Fresh evaluations that were asked for.
    pub evaluations: u64,
    /// Of those, evaluations of decision nodes, which are no visits.
    pub root_evaluations: u64,
    /// Visits that an evaluation from an earlier decision answered.
    pub gray_visits: u64,
    /// Visits that the rules answered: the game is over there.
    pub terminal_visits: u64,
    /// Traversals given up because they came to a leaf that is out already.
    pub collisions: u64,
    /// Leaves that were evaluated but not kept, because the tree has reached its largest size.
    pub unstored: u64,
    /// Nodes that were moved when dropped ones were reclaimed.
    pub moved: u64,
    /// Nodes held now, dropped ones that are not reclaimed yet included.
    pub nodes: u64,
    /// Bytes they take up.
    pub bytes_used: u64,
    /// Bytes allocated for them.
    pub bytes: u64,
}
