//! Switchable rules.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Treatment of a dead end: the game is not decided, but the player to act has no legal action. Either a chain has released
/// a piece that cannot move, or nothing can be lifted at the start of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadEnd {
    /// The player loses, as in the original project's training.
    #[default]
    Loss,
    /// Only actions after which the turn can be completed are offered, as people expect. A player who cannot complete any
    /// turn loses.
    Forbid,
    /// The game stays unfinished, as in the original engine.
    Neutral,
}

/// Permission to come back to an earlier state of the same turn. With it, a chain can be endless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnCycles {
    /// Actions that lead back to a state of the same turn are not offered.
    #[default]
    Forbid,
    /// Such actions are offered, as in the original engine.
    Allow,
}

/// Rules of a game. The default is for self-play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// A running game whose player has no legal action: `loss` (default): the player loses; `forbid`: actions that lead only
    /// there are not offered; `neutral`: the game stays unfinished, as in the original engine.
    pub dead_end: DeadEnd,
    /// Actions that bring back a position of the same turn: `forbid` (default): they are not offered; `allow`.
    pub turn_cycles: TurnCycles,
    /// Number of times that a position must be recorded to end the game as a draw; 0 switches this off. Positions are
    /// recorded at the end of each turn, so the start position does not count until it occurs again.
    pub draw_after_n_repetitions: u8,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            dead_end: DeadEnd::Loss,
            turn_cycles: TurnCycles::Forbid,
            draw_after_n_repetitions: 3,
        }
    }
}

impl Rules {
    /// Returns the rules of the original engine: a dead end is not a result, chains may repeat a state, and every position
    /// that a FEN can describe can be loaded.
    pub const fn compatibility() -> Self {
        Self {
            dead_end: DeadEnd::Neutral,
            turn_cycles: TurnCycles::Allow,
            draw_after_n_repetitions: 3,
        }
    }
}
