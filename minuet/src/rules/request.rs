//! One request about the rules of a game.

use serde::Deserialize;
use serde_json::{Map, Value};

/// One line of input.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Name of the game.
    pub game: String,
    /// Start position as the game writes it, mostly a text. `None` means the usual start.
    #[serde(default)]
    pub start: Option<Value>,
    /// Actions to play from the start, as the game writes them in JSON.
    #[serde(default)]
    pub actions: Option<Vec<Value>>,
    /// Representation of the row. `None` means the game's usual one.
    #[serde(default)]
    pub options: Option<u32>,
    /// True if the answer should hold the legal actions before each action.
    #[serde(default)]
    pub trace: bool,
    /// All other fields: switches of the game's rules, and the game's own fields for a start.
    #[serde(flatten)]
    pub rules: Map<String, Value>,
}

impl Request {
    /// Reads a line. Returns its id (null if it has none) and the request.
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
