//! The answer.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// One line of output.
#[derive(Debug)]
pub struct Answer {
    /// As in the request.
    pub id: Value,
    /// The state asked for, or what was wrong with the request.
    pub result: Result<StateAnswer, String>,
}

/// What is told of a state.
#[derive(Debug)]
pub struct StateAnswer {
    /// The legal actions as the game writes them.
    pub legal: Vec<Value>,
    /// 0 for the first player, 1 for the second.
    pub to_move: usize,
    /// The position as text.
    pub fen: String,
    /// How the game ended, if it has.
    pub outcome: Option<&'static str>,
    /// The index row; empty for a state that has none.
    pub row: Vec<u32>,
    /// What only this game tells.
    pub more: Vec<(&'static str, Value)>,
    /// The legal set before each action and after the last, if it was asked for.
    pub legal_before: Option<Vec<Vec<Value>>>,
}

impl Answer {
    /// The answer to a request that cannot be answered.
    pub fn error(id: Value, error: impl Into<String>) -> Self {
        Self {
            id,
            result: Err(error.into()),
        }
    }
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        match &self.result {
            Ok(state) => {
                map.serialize_entry("legal", &state.legal)?;
                map.serialize_entry("to_move", &state.to_move)?;
                map.serialize_entry("fen", &state.fen)?;
                map.serialize_entry("outcome", &state.outcome)?;
                map.serialize_entry("row", &state.row)?;
                map.serialize_entry("error", &Value::Null)?;
                for (name, value) in &state.more {
                    map.serialize_entry(name, value)?;
                }
                if let Some(sets) = &state.legal_before {
                    map.serialize_entry("legal_before", sets)?;
                }
            }
            Err(error) => {
                for name in ["legal", "to_move", "fen", "outcome", "row"] {
                    map.serialize_entry(name, &Value::Null)?;
                }
                map.serialize_entry("error", error)?;
            }
        }
        map.end()
    }
}
