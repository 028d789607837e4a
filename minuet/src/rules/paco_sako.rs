//! Paco Ŝako in JSON: actions are the codes 1 to 132, one more than the game's own numbers.

use games::{
    Action, Game,
    paco_sako::{PacoSako, Rules, Victory},
};
use serde_json::Value;

use super::face::Face;

/// Paco Ŝako under the original engine's rules.
pub struct PacoSakoFace;

impl Face for PacoSakoFace {
    type Game = PacoSako;

    const OPTIONS: u32 = 1;

    fn rules() -> Rules {
        Rules::compatibility()
    }

    fn read_action(_: &PacoSako, value: &Value) -> Result<Action, String> {
        match value.as_u64().and_then(|code| Action::try_from(code).ok()) {
            Some(code @ 1..=PacoSako::ACTIONS) => Ok(code - 1),
            _ => Err(format!("{value} is no action code (1 to {})", PacoSako::ACTIONS)),
        }
    }

    fn write_action(_: &PacoSako, action: Action) -> Value {
        Value::from(action + 1)
    }

    fn outcome(state: &PacoSako) -> Option<&'static str> {
        match state.victory_state() {
            Victory::PacoVictoryWhite => Some("first"),
            Victory::PacoVictoryBlack => Some("second"),
            Victory::NoProgressDraw | Victory::RepetitionDraw => Some("draw"),
            // Not decided on the board, but over: the mover is in a dead end.
            Victory::Running => state.outcome().map(|_| "loss-of-mover"),
        }
    }

    fn more(state: &PacoSako, _: games::paco_sako::Encoding) -> Vec<(&'static str, Value)> {
        vec![
            ("required_action", state.required_action().name().into()),
            ("no_progress", state.no_progress().into()),
            ("victory_state", state.victory_state().name().into()),
        ]
    }
}
