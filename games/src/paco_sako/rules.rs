//! What the rules can be switched between.

use serde::{Deserialize, Serialize};

/// What happens to a player who has no legal action while the game runs: a chain has released a piece
/// that cannot move, or nothing can be lifted at the start of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadEnd {
    /// The player loses, as in the original project's training.
    #[default]
    Loss,
    /// An action is offered only if the turn can be completed after it, as people at a board expect.
    /// A player who cannot complete any turn loses.
    Forbid,
    /// Nothing: the game stays unfinished, as in the original rules engine.
    Neutral,
}

/// Whether one turn may come back to a state it has already been in (a chain may run in circles for ever).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnCycles {
    /// An action that recreates a state seen in the same turn is not offered.
    #[default]
    Forbid,
    /// As in the original rules engine.
    Allow,
}

/// The rules table. Its default is what self-play uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// `loss` (default), `forbid` or `neutral`.
    pub dead_end: DeadEnd,
    /// `forbid` (default) or `allow`.
    pub turn_cycles: TurnCycles,
    /// A position that is recorded for the n-th time ends the game as a draw; 0 switches this off.
    /// Positions are recorded at the end of a turn, so the one a game begins in does not count until it comes back.
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
    /// The original engine's behaviour: dead ends are no result, chains may run in circles, and any
    /// position that can be written down can be loaded.
    pub const fn compatibility() -> Self {
        Self {
            dead_end: DeadEnd::Neutral,
            turn_cycles: TurnCycles::Allow,
            draw_after_n_repetitions: 3,
        }
    }
}
