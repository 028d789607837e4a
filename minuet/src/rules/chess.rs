//! Chess in JSON: moves as UCI writes them.

use games::{
    Action, Game, Symmetry,
    chess::{Chess, Rules},
};
use serde_json::{Map, Value};

use super::face::Face;

/// Chess with every promotion.
pub struct ChessFace;

impl Face for ChessFace {
    type Game = Chess;

    const OPTIONS: u32 = 0;

    fn rules() -> Rules {
        Rules {
            underpromotions: true,
        }
    }

    fn read_action(state: &Chess, value: &Value) -> Result<Action, String> {
        let uci = value
            .as_str()
            .ok_or_else(|| format!("{value} is not a move as UCI writes it, e.g. \"e2e4\""))?;
        state.action_of_uci(uci).map_err(|error| error.to_string())
    }

    fn write_action(state: &Chess, action: Action) -> Value {
        Value::from(state.uci(action))
    }

    /// The policy entry of every move that the pieces can make, also where a draw has ended the game.
    fn more(state: &Chess, (): ()) -> Vec<(&'static str, Value)> {
        let mut actions = Vec::new();
        state.moves(&mut actions);
        let policy: Map<String, Value> = actions
            .into_iter()
            .map(|action| {
                let entry = state.policy_index((), Symmetry::IDENTITY, action);
                (state.uci(action), Value::from(entry))
            })
            .collect();
        vec![("policy", Value::Object(policy))]
    }
}
