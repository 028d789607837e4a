//! A finished game: one line of `games.jsonl`, replayable by itself.

use games::{Action, Game, Outcome, Player};
use serde::{Deserialize, Serialize};

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Result {
    /// The player who began won.
    First,
    /// The other one won.
    Second,
    /// Nobody won.
    Draw,
}

impl Result {
    /// Half-points of the player who began.
    pub fn half_points(self) -> u8 {
        match self {
            Self::First => 2,
            Self::Draw => 1,
            Self::Second => 0,
        }
    }

    /// From the rules' outcome.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Won(Player::First) => Self::First,
            Outcome::Won(Player::Second) => Self::Second,
            Outcome::Draw | Outcome::Scored(_) => Self::Draw,
        }
    }
}

/// A finished game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GameRecord {
    /// The game's number in the match.
    pub game: u64,
    /// Who began, and who did not, by their place in the match's list of players.
    pub players: [usize; 2],
    /// Where it began; `None`: the game's usual start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// How many of the actions are the opening's.
    pub opening: usize,
    /// Absolute action ids, the opening's first.
    pub actions: Vec<Action>,
    /// How it ended.
    pub result: Result,
    /// The same in the game's own words; `max-actions`, `no-action` and `illegal-move` are the arena's.
    pub ending: String,
    /// Each player's draws are keyed by the match's seed and this number (see [`seat_key`](super::plan::seat_key)).
    pub keys: [u64; 2],
    /// Nodes or positions the players visited in all.
    pub visits: [u64; 2],
    /// How long it took, in milliseconds (while others were played at once).
    pub milliseconds: u64,
}

impl GameRecord {
    /// Plays it again.
    ///
    /// # Errors
    /// What contradicts the rules, in a few words.
    pub fn replay<G: Game>(&self, rules: &G::Rules) -> std::result::Result<G, String> {
        let mut state = G::start(rules, self.start.as_deref()).map_err(|error| error.to_string())?;
        for (number, &action) in self.actions.iter().enumerate() {
            state
                .play(action)
                .map_err(|error| format!("action {number}: {error}"))?;
        }
        if self.opening > self.actions.len() {
            return Err("its opening is longer than the game".into());
        }
        if let Some(outcome) = state.outcome()
            && Result::of(outcome) != self.result
        {
            return Err(format!("it ended otherwise: {outcome:?}"));
        }
        Ok(state)
    }
}
