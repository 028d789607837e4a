//! The answer to one request.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// One line of output.
#[derive(Debug)]
pub struct Answer {
    /// Id of the request.
    pub id: Value,
    /// Description of the state, or why the request cannot be answered.
    pub result: Result<StateAnswer, String>,
}

/// Description of a state.
#[derive(Debug)]
pub struct StateAnswer {
    /// Legal actions, as the game writes them in JSON.
    pub legal: Vec<Value>,
    /// Player to act: 0 for the first, 1 for the second.
    pub to_move: usize,
    /// The position as text.
    pub fen: String,
    /// Outcome of the game. `None` while it runs.
    pub outcome: Option<&'static str>,
    /// Index row. Empty for a state that has none.
    pub row: Vec<u32>,
    /// Fields that only this game has.
    pub more: Vec<(&'static str, Value)>,
    /// Legal actions before each action and after the last, if the request asks for a trace.
    pub legal_before: Option<Vec<Vec<Value>>>,
}

impl Answer {
    /// Answer that reports an error.
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
