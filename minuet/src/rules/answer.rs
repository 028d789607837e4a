//! Requests about the rules of games, and their answers.

use std::sync::Arc;

use games::{
    Symmetry,
    erased::{self, AnyGame, AnyState, Variant, VariantError},
    registry,
};
use serde::{Deserialize, Serialize, Serializer};
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
    options: Option<u32>,
    /// True if the answer should hold the legal actions before each action.
    #[serde(default)]
    trace: bool,
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
        let request = serde_json::from_value(Value::Object(fields));
        (id, request.map_err(|error| error.to_string()))
    }
}

/// One line of output. Without an error it describes a state.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    /// Id of the request.
    id: Value,
    /// Legal actions, as the game writes them in JSON.
    legal: Option<Vec<Value>>,
    /// Player to act: 0 for the first, 1 for the second.
    to_move: Option<usize>,
    /// The position as text.
    fen: Option<String>,
    /// Outcome of the game. `None` while it runs.
    outcome: Option<&'static str>,
    /// Index row. Empty for a state that has none.
    row: Option<Vec<u32>>,
    /// Reason why the request cannot be answered.
    error: Option<String>,
    /// Fields that only this game has.
    #[serde(flatten, serialize_with = "as_fields")]
    more: Vec<(&'static str, Value)>,
    /// Legal actions before each action and after the last, if the request asks for a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    legal_before: Option<Vec<Vec<Value>>>,
}

fn as_fields<S: Serializer>(fields: &[(&'static str, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

impl Answer {
    /// Answers a line of input.
    pub fn of_line(line: &[u8]) -> Self {
        let (id, request) = Request::read(line);
        let answer = request.and_then(|request| answer(&request));
        Self {
            id,
            ..answer.unwrap_or_else(Self::of_error)
        }
    }

    /// Answer without an id that reports an error.
    pub fn of_error(error: String) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl Request {
    /// Returns the game of the request with its rules: `usual` ones, with the switches of the request.
    ///
    /// # Errors
    /// Sentence that says why there is no such game, or which rule it does not have.
    pub fn variant(&self, usual: fn(&AnyGame) -> Value) -> Result<Arc<dyn Variant>, String> {
        let named = registry::find(&self.game).map_err(|error| error.to_string())?;
        let game = named.with_rules(&self.rules);
        if self.game.contains(':') && game.title() != named.title() {
            return Err(format!(
                "the game is {}, but `size` is that of {}",
                self.game,
                game.title()
            ));
        }
        let rules = switched(game, usual(game), &self.rules);
        game.variant(&rules, self.options).map_err(|error| match error {
            VariantError::Rules { source, .. } => source.to_string(),
            VariantError::Options(error) => error.to_string(),
        })
    }
}

/// Returns `usual` rules with those that the fields of a request or of a game's line replace. Fields of the game's own for a start are none.
pub fn switched(game: &AnyGame, usual: Value, fields: &Map<String, Value>) -> Value {
    let switches = fields.clone().into_iter();
    erased::changed(
        usual,
        switches.filter(|(name, _)| !game.start_fields.contains(&name.as_str())),
    )
}

/// Plays the actions of a request and describes the state that they lead to. An error is a message for the `error` field.
fn answer(request: &Request) -> Result<Answer, String> {
    let variant = request.variant(AnyGame::json_rules)?;
    let mut state = variant.start_from_json(request.start.as_ref(), &request.rules)?;
    let mut legal_before = request.trace.then(Vec::new);
    for (index, value) in request.actions.iter().flatten().enumerate() {
        if let Some(sets) = &mut legal_before {
            sets.push(legal(state.as_ref()));
        }
        let action = state
            .action_from_json(value)
            .map_err(|error| format!("action {index}: {error}"))?;
        state
            .play(action)
            .map_err(|error| format!("action {index}: {value} is not legal: {}", error.reason))?;
    }
    let legal = legal(state.as_ref());
    if let Some(sets) = &mut legal_before {
        sets.push(legal.clone());
    }
    let mut row = Vec::new();
    state.write_row(Symmetry::IDENTITY, &mut row);
    Ok(Answer {
        legal: Some(legal),
        to_move: Some(state.to_move().index()),
        fen: Some(state.position()),
        outcome: state.outcome_name(),
        row: Some(row),
        more: state.json_fields(),
        legal_before,
        ..Answer::default()
    })
}

fn legal(state: &dyn AnyState) -> Vec<Value> {
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    let actions = actions.iter();
    actions.map(|&action| state.action_to_json(action)).collect()
}
