//! Virtual losses, by which one search requests several leaves at once without choosing one path twice.
//!
//! Each pending leaf adds one virtual loss to every edge of its path. Selection treats it as a visit that was lost by
//! whoever chose the edge: with `L` virtual losses, `W - L` and `N + L` stand for `W` and `N`, and `ΣN` includes them. (In
//! a game whose values cannot be below 0, `W` and `N + L`; see [`Game::LOWEST_VALUE`](games::Game::LOWEST_VALUE).) Virtual
//! losses are counted apart and never mixed into `W`, so rounding cannot leave any behind. They share a word with the
//! edge's action.

use crate::tree::{ACTION_BITS, MAX_ACTIONS, Step, Tree};

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
