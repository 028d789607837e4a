//! The record of a finished game: one line of `games.jsonl`, from which the game can be replayed.

use anyhow::{Context as _, bail, ensure};
use games::{
    Action, Outcome, Player,
    erased::{AnyState, Variant},
};
use serde::{Deserialize, Serialize};

/// Result of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Result {
    /// The player who began won. In games of one player: the player has solved the problem.
    First,
    /// The other player won. In games of one player: the problem is not solved.
    Second,
    /// The game is a draw.
    Draw,
    /// The game does not count, because the rules failed: code of a game from outside.
    Uncounted,
}

/// Ending of a game that does not count.
pub const RULES_FAILED: &str = "rules-failed";

impl Result {
    /// Half-points of the player who began. `None` if the game does not count.
    pub fn half_points(self) -> Option<u8> {
        match self {
            Self::First => Some(2),
            Self::Draw => Some(1),
            Self::Second => Some(0),
            Self::Uncounted => None,
        }
    }

    /// The result that belongs to an outcome by the rules.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Won(Player::First) => Self::First,
            Outcome::Won(Player::Second) => Self::Second,
            Outcome::Draw => Self::Draw,
            Outcome::Scored(value) if value > 0.0 => Self::First,
            Outcome::Scored(_) => Self::Second,
        }
    }
}

/// A finished game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameRecord {
    /// Number of the game in the match.
    pub game: u64,
    /// The player who began, then the other player, as indices into the players of the plan.
    pub players: [usize; 2],
    /// Start position; `None` for the usual start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Number of actions that belong to the opening.
    pub opening: usize,
    /// Absolute action ids, beginning with those of the opening.
    pub actions: Vec<Action>,
    /// Result of the game.
    pub result: Result,
    /// Kind of ending: a name by the game's rules, or `max-actions`, `no-action`, `illegal-move`, `resigned` or
    /// [`RULES_FAILED`].
    pub ending: String,
    /// For each player, the number that keys its random draws together with the seed (see [`seat_key`](super::plan::seat_key)).
    pub keys: [u64; 2],
    /// For each player, the number of visits of its searches.
    pub visits: [u64; 2],
    /// Duration in milliseconds, while other games were played at the same time.
    pub milliseconds: u64,
}

impl GameRecord {
    /// Half-points of a player. `None` if the game does not count.
    pub fn half_points_of(&self, player: usize) -> Option<u8> {
        let half = self.result.half_points()?;
        Some(if self.players[0] == player { half } else { 2 - half })
    }

    /// Replays the game and returns its last state.
    ///
    /// # Errors
    /// The first contradiction to the rules.
    pub fn replay(&self, variant: &dyn Variant) -> anyhow::Result<Box<dyn AnyState>> {
        let mut state = variant.start(self.start.as_deref())?;
        for (number, &action) in self.actions.iter().enumerate() {
            state.play(action).with_context(|| format!("action {number}"))?;
        }
        ensure!(
            self.opening <= self.actions.len(),
            "the opening is longer than the game"
        );
        if let Some(outcome) = state.outcome()
            && Result::of(outcome) != self.result
        {
            bail!("the recorded result differs from the outcome by the rules: {outcome:?}");
        }
        Ok(state)
    }
}
