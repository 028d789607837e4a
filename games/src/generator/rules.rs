//! [`Rules`]: what happens to moves that fail or lead back, the move limit, and the shares of pairs, tasks and drawings.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Treatment of moves that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Illegal {
    /// Moves that fail are not offered (`strict`), the default. Marks are always offered, even wrong ones.
    #[default]
    Strict,
    /// All moves that an imp's kind and role allow are offered (`oops`). A move that fails is an Oops: it ends the game
    /// with the value 0. These are the original rules. A search without a trained network plays such moves at once.
    Oops,
}

/// Treatment of moves that lead back to an earlier clan of the episode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cycles {
    /// Such moves fail.
    #[default]
    Forbid,
    /// Such moves are allowed.
    Allow,
}

/// Rules of a game. The default is for self-play.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Moves that fail: `strict` (default): they are not offered; `oops`: they are offered, and one ends the game with the value 0.
    pub illegal: Illegal,
    /// Moves back to an earlier clan of the same game: `forbid` (default): they fail; `allow`.
    pub cycles: Cycles,
    /// Number of moves after which an unsolved problem ends with the value 0. At least 1.
    pub move_limit: u32,
    /// Percentage of pairs among the problems drawn for self-play, 0 to 100.
    pub pairs: u8,
    /// Percentage of pairs with example pairs of the same task, 0 to 100. Above 0, game.options must be ["examples"], so
    /// that the network takes the examples.
    pub tasks: u8,
    /// Percentage of the problems of each kind that are drawn from the grammar instead of made by random moves, 0 to 100: evenly
    /// drawn sizes, places, lengths, directions and colours, which random moves hardly reach. Their level is the number of
    /// moves that their grid takes at most. The known solution leads straight there.
    pub drawings: u8,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            illegal: Illegal::Strict,
            cycles: Cycles::Forbid,
            move_limit: 64,
            pairs: 0,
            tasks: 0,
            drawings: 0,
        }
    }
}

impl Rules {
    /// Rules of the reference implementation: failing moves are Oopses, and cycles are allowed.
    pub fn compatibility() -> Self {
        Self {
            cycles: Cycles::Allow,
            ..Self::oops()
        }
    }

    /// Default rules, but moves that fail are offered and are Oopses, as in the specification.
    pub fn oops() -> Self {
        Self {
            illegal: Illegal::Oops,
            ..Self::default()
        }
    }
}
