//! Several gathers at the same time: the pending leaves of one gather are set aside, so that the next gather can begin before they
//! are evaluated.
//!
//! That is how several threads search one tree: each gathers leaves of its own, evaluates them, and applies the evaluations. The
//! tree has one owner at any moment, so the threads take turns with it. Virtual losses of all pending leaves keep the gathers
//! apart.
//!
//! Leaves that are set aside count as pending everywhere: no gather requests one again, and no decision is complete without
//! them.

use std::mem::{swap, take};

use games::Game;

use crate::{
    apply::ApplyError,
    leaf::{Evaluation, LeafId, PendingLeaf},
    search::Search,
    tree::{NodeId, Step},
};

/// The pending leaves of a gather that is not the last one.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    gather: u64,
    pending: Vec<PendingLeaf>,
    pending_paths: Vec<Step>,
    unanswered: u32,
}

impl<G: Game> Search<G> {
    /// Sets the pending leaves of the last gather aside, so that [`Search::gather`] can request others. [`Search::apply`] takes
    /// their evaluations as before; between the first and the last of them there must be no gather, because a visit would
    /// find a leaf evaluated whose own visit is still to be backed up.
    pub fn set_aside(&mut self) {
        if self.unanswered == 0 {
            return;
        }
        if !self.uses_virtual_loss() {
            self.tree.add_virtual_loss(&self.pending_paths);
        }
        self.aside.push(Aside {
            gather: self.gathers,
            pending: take(&mut self.pending),
            pending_paths: take(&mut self.pending_paths),
            unanswered: take(&mut self.unanswered),
        });
    }

    /// Gives a leaf that was set aside its evaluation. `None` if no leaves of its gather are aside.
    pub(crate) fn apply_aside(
        &mut self,
        leaf: LeafId,
        evaluation: Evaluation<'_>,
    ) -> Option<Result<(), ApplyError>> {
        let place = self.aside.iter().position(|aside| aside.gather == leaf.gather)?;
        let mut aside = self.aside.swap_remove(place);
        self.exchange(&mut aside);
        let applied = self.apply_to_last(leaf, evaluation);
        self.exchange(&mut aside);
        if aside.unanswered > 0 {
            self.aside.push(aside);
        }
        Some(applied)
    }

    /// Exchanges the pending leaves of the last gather with others.
    fn exchange(&mut self, aside: &mut Aside) {
        if !self.uses_virtual_loss() {
            self.tree.add_virtual_loss(&self.pending_paths);
            self.tree.remove_virtual_loss(&aside.pending_paths);
        }
        swap(&mut self.gathers, &mut aside.gather);
        swap(&mut self.pending, &mut aside.pending);
        swap(&mut self.pending_paths, &mut aside.pending_paths);
        swap(&mut self.unanswered, &mut aside.unanswered);
    }

    /// Abandons the leaves that are set aside.
    pub(crate) fn abandon_aside(&mut self) {
        for aside in self.aside.drain(..) {
            self.tree.remove_virtual_loss(&aside.pending_paths);
        }
    }

    /// Number of leaves that are set aside and not backed up.
    pub(crate) fn leaves_aside(&self) -> u32 {
        self.aside.iter().map(|aside| aside.pending.len() as u32).sum()
    }

    /// True if the evaluation of `node` was requested and is not applied.
    pub(crate) fn is_pending(&self, node: NodeId) -> bool {
        let aside = self.aside.iter().flat_map(|aside| &aside.pending);
        self.pending
            .iter()
            .chain(aside)
            .any(|leaf| leaf.node == Some(node))
    }

    /// True if the leaf at the end of the current path is pending without a node, for lack of room.
    pub(crate) fn is_pending_without_node(&self) -> bool {
        let is_at_end = |pending: &[PendingLeaf], paths: &[Step]| {
            pending.iter().any(|leaf| {
                leaf.node.is_none() && paths.get(leaf.path_end.wrapping_sub(1)) == self.path.last()
            })
        };
        is_at_end(&self.pending, &self.pending_paths)
            || self
                .aside
                .iter()
                .any(|aside| is_at_end(&aside.pending, &aside.pending_paths))
    }
}
