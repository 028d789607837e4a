//! Backup: a leaf's value goes into every edge of the path that led to it.

use games::{FirstValue, Game};

use crate::{
    search::Search,
    tree::{BEST, Step, TOTAL, Tree, VISITS},
};

impl Tree {
    /// Adds one visit with the leaf's value to each edge of the path. Each edge receives the value as seen by the player who
    /// chose it, discounted once for every action in between.
    pub(crate) fn back_up(&mut self, path: &[Step], leaf: FirstValue, discount: f32) {
        let mut value = leaf;
        for &step in path.iter().rev() {
            value = value.discounted(discount);
            let seen = value.seen_by(self.mover(step.node));
            let places = (self.place(step, TOTAL), self.place(step, VISITS));
            let (Some(total), Some(visits)) = places else {
                // Every node of a path has statistics.
                continue;
            };
            self.words[total] = (f32::from_bits(self.words[total]) + seen.get()).to_bits();
            if let (true, Some(best)) = (self.keeps_best(), self.place(step, BEST)) {
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
            *self.visit_sum_mut(step.node) += 1;
        }
    }
}

impl<G: Game> Search<G> {
    /// Backs up the current path, whose leaf needed no evaluation.
    pub(crate) fn back_up_path(&mut self, value: FirstValue) {
        self.tree.back_up(&self.path, value, self.discount());
        self.count_visit(self.path.len());
    }

    /// Backs up all pending leaves in the order in which they were gathered, once each has its evaluation.
    pub(crate) fn back_up_pending(&mut self) {
        if self.uses_virtual_loss() {
            self.tree.remove_virtual_loss(&self.pending_paths);
        }
        let discount = self.discount();
        let mut begin = 0;
        for index in 0..self.pending.len() {
            let leaf = &self.pending[index];
            let path = &self.pending_paths[begin..leaf.path_end];
            begin = leaf.path_end;
            if let Some(node) = leaf.node {
                self.tree.activate(node, self.generation);
            }
            if let (false, Some(value)) = (path.is_empty(), leaf.value) {
                let actions = path.len();
                self.tree.back_up(path, value, discount);
                self.count_visit(actions);
            }
        }
        self.pending.clear();
        self.pending_paths.clear();
        if self.root_priors.is_empty() {
            self.activate_root();
        }
    }

    fn count_visit(&mut self, actions: usize) {
        self.visits_done += 1;
        self.depths.add(actions);
        self.counters.visits += 1;
    }

    /// Returns the discount of one action: 1 unless the game has one player.
    fn discount(&self) -> f32 {
        if G::PLAYERS == 1 {
            self.settings.discount
        } else {
            1.0
        }
    }
}
