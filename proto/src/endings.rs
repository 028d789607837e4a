//! Names in [`Game::ending`] of endings that no game's rules define.

use crate::v1::{Game, GameResult};

/// The game reached the run's limit of actions.
pub const MAX_ACTIONS: &str = "max-actions";
/// The player to act has no legal action, and the rules give no outcome.
pub const NO_ACTION: &str = "no-action";

impl Game {
    /// True if a game of two players has no result, because it reached the limit of actions. Such a game is recorded as a draw. (A
    /// problem of a one-player game that is not solved within the limit has a result: it is not solved.)
    pub fn is_undecided(&self) -> bool {
        self.ending == MAX_ACTIONS && self.result() == GameResult::Draw
    }
}
