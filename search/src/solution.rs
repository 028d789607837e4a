//! [`Solution`]: the shortest known sequence of actions to the best outcome of a one-player game, or the best line to the
//! proven outcome of a two-player game.

use games::Action;

/// The shortest solution known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solution {
    /// Actions from the decision node; empty if no solution is known.
    pub actions: Vec<Action>,
    pub is_proven: bool,
    /// Number of visits of the decision at which a proof is tried again.
    pub next_proof: u32,
}

impl Solution {
    /// Drops the first action if the game took it, or else the whole solution.
    pub(crate) fn advance(&mut self, action: Action) {
        self.next_proof = 0;
        if self.actions.first() == Some(&action) {
            // The rest of a shortest solution is a shortest solution.
            self.actions.remove(0);
            self.is_proven &= !self.actions.is_empty();
        } else {
            self.actions.clear();
            self.is_proven = false;
        }
    }
}
