//! Lines and messages as queries and commands. An error is a message that begins with the name of the field.

use games::{Action, Course, erased::AnyGame};
use proto::v1::{AnalysisQuery, AnalyzeRequest, analyze_request};
use search::Settings;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::rules::answer::switched;

/// Visits of a query that gives none.
const VISITS: u32 = 200;
/// Moves that an answer lists.
const LINES: usize = 5;
/// Most positions of one query.
pub const MAX_TURNS: usize = 1024;
/// Longest id in bytes.
const MAX_ID: usize = 256;
/// Most visits of a query that includes the tree, over all of its positions.
const MAX_TREE: u64 = 20_000;
/// Memory of an answer without its moves, in bytes.
pub const ANSWER_BYTES: usize = 512;
/// Memory of a move with its line in an answer, in bytes.
const LINE_BYTES: usize = 512;
/// Memory of the figures of a move in an answer, in bytes.
const MOVE_BYTES: usize = 64;
/// Memory of a node of the tree in an answer, in bytes.
const NODE_BYTES: usize = 96;

/// A line of input, or a message.
#[derive(Debug)]
pub enum Request {
    /// Positions to analyse.
    Query(Box<Query>),
    /// Ends a query early.
    Cancel(Value),
    /// Changes the priority of a query.
    Priority(Value, i32),
    /// Asks for the version of Minuet.
    Version,
    /// Asks for the network.
    Models,
    /// Forgets all trees and evaluations.
    ClearCache,
}

/// Positions to analyse.
#[derive(Debug)]
pub struct Query {
    /// The game.
    pub course: Course,
    /// Text that tells the game from others: rules and start.
    pub begin: String,
    /// Positions: the turn, which is the number of moves before it, and the number of actions before it.
    pub turns: Vec<(usize, usize)>,
    /// Visits of each search.
    pub visits: u32,
    /// Time of each search in milliseconds.
    pub time_ms: Option<u64>,
    /// Interval of partial answers in milliseconds.
    pub report_ms: Option<u64>,
    /// Place among the queries: the largest number is first.
    pub priority: i32,
    /// Seed of the draws among equal moves.
    pub seed: u64,
    /// Contents of the answers.
    pub wanted: Wanted,
    /// Memory that the answers take until the client has read them, in bytes.
    pub bytes: usize,
}

/// Contents of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Moves that are listed.
    pub lines: usize,
    /// Further parts.
    pub include: Vec<Include>,
}

/// A part of an answer that is given if the query names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Include {
    /// Prior of every legal move.
    Priors,
    /// Visits and value of every visited move.
    Values,
    /// Every node with visits.
    Tree,
}

/// Fields of a line that are not read yet.
struct Fields(Map<String, Value>);

impl Fields {
    /// Takes a field; `None` if it is missing or null.
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let value = self.0.remove(name).unwrap_or_default();
        serde_json::from_value(value).map_err(|error| format!("{name}: {error}"))
    }

    /// Refuses fields that nobody has taken.
    fn end(self) -> Result<(), String> {
        let unknown = self.0.keys().next();
        unknown.map_or(Ok(()), |name| Err(format!("{name}: unknown field")))
    }
}

/// Reads a line. Returns its id (null if it has none) and the request.
pub fn read(game: &'static AnyGame, line: &[u8]) -> (Value, Result<Request, String>) {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => return (Value::Null, Err(format!("not JSON: {error}"))),
    };
    let Value::Object(mut fields) = value else {
        return (Value::Null, Err("the line is JSON, but no object".into()));
    };
    let id = fields.remove("id").unwrap_or_default();
    if !(id.is_string() || id.is_number()) {
        return (id, Err("id: must be a text or a number".into()));
    }
    match too_long(&id) {
        Some(error) => (Value::Null, Err(error)),
        None => (id, request(game, Fields(fields))),
    }
}

/// Refuses a long id, because each answer has a copy of it.
fn too_long(id: &Value) -> Option<String> {
    let length = id.as_str().map_or(0, str::len);
    (length > MAX_ID).then(|| format!("id: {length} bytes; at most {MAX_ID} are possible"))
}

/// Reads a message. Returns its id and the request.
pub fn read_message(game: &'static AnyGame, message: AnalyzeRequest) -> (Value, Result<Request, String>) {
    let id = Value::from(message.id);
    if let Some(error) = too_long(&id) {
        return (Value::Null, Err(error));
    }
    let request = match message.request {
        None => Err("query: missing".into()),
        Some(analyze_request::Request::Query(asked)) => fields_of(asked)
            .and_then(|fields| query(game, fields))
            .map(|query| Request::Query(Box::new(query))),
        Some(analyze_request::Request::Cancel(of)) => Ok(Request::Cancel(of.into())),
        Some(analyze_request::Request::Priority(change)) => {
            Ok(Request::Priority(change.of.into(), change.priority))
        }
    };
    (id, request)
}

/// Returns the fields of a message as those of a line.
fn fields_of(mut query: AnalysisQuery) -> Result<Fields, String> {
    let rules = query.rules.take();
    let Ok(Value::Object(mut fields)) = serde_json::to_value(query) else {
        return Err("query: not readable".into());
    };
    if let Some(rules) = rules {
        let rules = serde_json::from_str(&rules).map_err(|error| format!("rules: {error}"))?;
        fields.insert("rules".into(), rules);
    }
    Ok(Fields(fields))
}

fn request(game: &'static AnyGame, mut fields: Fields) -> Result<Request, String> {
    let command: Option<String> = fields.take("do")?;
    let of = |fields: &mut Fields| {
        let of = fields.take("of")?;
        of.ok_or_else(|| "of: the id of a query is missing".to_owned())
    };
    let request = match command.as_deref() {
        None => return Ok(Request::Query(Box::new(query(game, fields)?))),
        Some("cancel") => Request::Cancel(of(&mut fields)?),
        Some("priority") => {
            let priority = fields.take("priority")?;
            let priority = priority.ok_or("priority: a number is missing")?;
            Request::Priority(of(&mut fields)?, priority)
        }
        Some("version") => Request::Version,
        Some("models") => Request::Models,
        Some("clear-cache") => Request::ClearCache,
        Some(other) => {
            return Err(format!(
                "do: unknown command `{other}`: cancel, priority, version, models or clear-cache"
            ));
        }
    };
    fields.end()?;
    Ok(request)
}

fn query(game: &'static AnyGame, mut fields: Fields) -> Result<Query, String> {
    let rules: Map<String, Value> = fields.take("rules")?.unwrap_or_default();
    let start: Option<Value> = fields.take("start")?;
    let moves: Vec<Value> = fields.take("moves")?.unwrap_or_default();
    let switched = switched(game, game.people_rules(), &rules);
    let variant = game
        .variant(&switched, None)
        .map_err(|error| format!("rules: {}", service::chain(&error)))?;
    let found = variant.game();
    if found.title() != game.title() {
        return Err(format!(
            "rules: the network plays {}, not {}",
            game.title(),
            found.title()
        ));
    }
    let begin = variant.start_from_json(start.as_ref(), &rules);
    let mut course = Course::new(begin.map_err(|error| format!("start: {error}"))?);
    let mut ends = vec![0];
    for (number, text) in moves.iter().enumerate() {
        let played = actions(&course, text).and_then(|actions| {
            let mut played = actions.iter().map(|&action| course.play(action));
            played.try_for_each(|played| played.map_err(|error| error.reason.to_string()))
        });
        played.map_err(|reason| format!("moves[{number}]: {text}: {reason}"))?;
        ends.push(course.actions().len());
    }
    let turns: Vec<usize> = fields.take("turns")?.unwrap_or_else(|| vec![moves.len()]);
    if turns.is_empty() || turns.len() > MAX_TURNS {
        return Err(format!(
            "turns: {} positions; 1 to {MAX_TURNS} are possible",
            turns.len()
        ));
    }
    let (mut legal, mut choices) = (Vec::new(), 0);
    let turns = turns.into_iter().map(|turn| {
        let end = ends.get(turn).copied();
        let end =
            end.ok_or_else(|| format!("turns: {turn} is more than the number of moves, {}", moves.len()))?;
        let state = course.state_after(end);
        if state.outcome().is_some() {
            return Err(format!("turns: the game is over at turn {turn}"));
        }
        legal.clear();
        state.legal_actions(&mut legal);
        choices += legal.len();
        Ok((turn, end))
    });
    let turns = turns.collect::<Result<Vec<_>, _>>()?;
    let time_ms = fields.take("time_ms")?;
    let visits: Option<u32> = fields.take("visits")?;
    let visits = visits.unwrap_or(time_ms.map_or(VISITS, |_| Settings::MAX_VISITS));
    if !(1..=Settings::MAX_VISITS).contains(&visits) {
        return Err(format!("visits: must be from 1 to {}", Settings::MAX_VISITS));
    }
    let include: Vec<Include> = fields.take("include")?.unwrap_or_default();
    let nodes = match include.contains(&Include::Tree) {
        true => turns.len() as u64 * u64::from(visits),
        false => 0,
    };
    if nodes > MAX_TREE {
        return Err(format!(
            "include: trees of at most {MAX_TREE} visits in all are written"
        ));
    }
    let report_ms = fields.take("report_ms")?;
    let lines = fields.take("lines")?.unwrap_or(LINES);
    // A partial answer may wait with the last one.
    let copies = if report_ms.is_some() { 2 } else { 1 };
    let bytes = turns.len() * ANSWER_BYTES
        + LINE_BYTES * choices.min(lines.saturating_mul(turns.len()))
        + MOVE_BYTES * choices * include.len()
        + NODE_BYTES * nodes as usize;
    let query = Query {
        begin: format!(
            "{}|{}|{}",
            variant.rules(),
            Value::from(start),
            Value::from(rules)
        ),
        course,
        turns,
        visits,
        time_ms,
        report_ms,
        priority: fields.take("priority")?.unwrap_or_default(),
        seed: fields.take("seed")?.unwrap_or_default(),
        wanted: Wanted { lines, include },
        bytes: copies * bytes,
    };
    fields.end()?;
    Ok(query)
}

/// Reads a move: a turn as people write it, or an action in JSON.
fn actions(course: &Course, text: &Value) -> Result<Vec<Action>, String> {
    match text {
        Value::String(text) => course.state().read_turn(text),
        other => Ok(vec![course.state().action_from_json(other)?]),
    }
}
