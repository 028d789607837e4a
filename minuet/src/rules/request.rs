//! The question.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One line of input.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// The game's name.
    pub game: String,
    /// The start position as the game writes it, mostly a text; the game's usual start without it.
    #[serde(default)]
    pub start: Option<Value>,
    /// Actions to play from there, as the game writes them.
    #[serde(default)]
    pub actions: Option<Vec<Value>>,
    /// The representation of the row; the game's usual one without it.
    #[serde(default)]
    pub options: Option<u32>,
    /// Whether every legal set on the way is wanted too.
    #[serde(default)]
    pub trace: bool,
    /// All other fields: switches of the game's rules.
    #[serde(flatten)]
    pub rules: Map<String, Value>,
}

impl Request {
    /// Reads a line: its id, as far as there is one, and the request.
    pub fn read(line: &[u8]) -> (Value, Result<Self, String>) {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => return (Value::Null, Err(format!("not JSON: {error}"))),
        };
        let Value::Object(mut fields) = value else {
            return (Value::Null, Err("the line is JSON, but no object".into()));
        };
        let id = fields.remove("id").unwrap_or_default();
        (
            id,
            serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string()),
        )
    }
}
