//! Games whose actions are plain numbers in JSON as well: Othello (64 passes) and Connect Four (columns 0 to 6).

use std::marker::PhantomData;

use games::{Action, Game};
use serde_json::Value;

use super::face::Face;

/// The face of a game whose actions are their own ids.
pub struct NumberedFace<G>(PhantomData<G>);

impl<G: Game> Face for NumberedFace<G> {
    type Game = G;

    const OPTIONS: u32 = 0;

    fn read_action(_: &G, value: &Value) -> Result<Action, String> {
        value
            .as_u64()
            .and_then(|number| Action::try_from(number).ok())
            .filter(|&action| action < G::ACTIONS)
            .ok_or_else(|| format!("{value} is no action number (0 to {})", G::ACTIONS - 1))
    }

    fn write_action(_: &G, action: Action) -> Value {
        Value::from(action)
    }
}
