//! A game of the user's own: rules in Python for all code of Minuet in this process.

use std::sync::Arc;

use games::{
    Action, Outcome, Player,
    outside::{self, Description, Fault, Position, Rules},
};
use pyo3::{prelude::*, types::PyTuple};

use crate::error::PositionError;

/// Rules in Python: an object with the methods `start()` and `play(state, action)`, which return a tuple of the state, the player to
/// move, the outcome (None, or the value for the first player), the legal actions and the row; `action_text(state, action)`; and
/// `report(text)`.
#[derive(Debug)]
struct PythonRules(Py<PyAny>);

/// Tuple that `start` and `play` return: state, player to move, outcome, legal actions, row.
type Answer = (Py<PyAny>, usize, Option<f32>, Vec<Action>, Vec<u32>);

impl PythonRules {
    fn ask(
        &self,
        method: &str,
        arguments: impl FnOnce(Python<'_>) -> PyResult<Py<PyTuple>>,
    ) -> Result<Position, Fault> {
        Python::attach(|py| {
            let asked =
                arguments(py).and_then(|arguments| self.0.bind(py).call_method1(method, arguments.bind(py)));
            let answer: PyResult<Answer> = asked.and_then(|answer| answer.extract());
            let (state, to_move, value, legal, row) = answer.map_err(|error| Fault::new(told(py, &error)))?;
            Ok(Position {
                state: Arc::new(state),
                to_move: match to_move {
                    0 => Player::First,
                    _ => Player::Second,
                },
                outcome: value.map(outcome),
                legal,
                row,
            })
        })
    }
}

/// Returns the outcome with this value for the first player.
fn outcome(value: f32) -> Outcome {
    match value {
        1.0 => Outcome::Won(Player::First),
        -1.0 => Outcome::Won(Player::Second),
        0.0 => Outcome::Draw,
        value => Outcome::Scored(value),
    }
}

/// Returns the text of an exception with its traceback.
fn told(py: Python<'_>, error: &PyErr) -> String {
    // The exception itself does not hold the traceback yet.
    let value = error.value(py);
    let attached = error
        .traceback(py)
        .map_or(Ok(()), |traceback| value.setattr("__traceback__", traceback));
    let lines = attached
        .and_then(|()| py.import("traceback"))
        .and_then(|module| module.call_method1("format_exception", (value,)))
        .and_then(|lines| lines.extract::<Vec<String>>());
    lines.map_or_else(|_| error.to_string(), |lines| lines.concat())
}

fn state_of(position: &Position) -> Option<&Py<PyAny>> {
    position.state.downcast_ref()
}

impl Rules for PythonRules {
    fn start(&self) -> Result<Position, Fault> {
        self.ask("start", |py| Ok(PyTuple::empty(py).unbind()))
    }

    fn play(&self, before: &Position, action: Action) -> Result<Position, Fault> {
        let state = state_of(before).ok_or_else(|| Fault::new("the state is of other rules"))?;
        self.ask("play", |py| {
            Ok((state.bind(py), action).into_pyobject(py)?.unbind())
        })
    }

    fn action_text(&self, position: &Position, action: Action) -> String {
        let text = state_of(position).map(|state| {
            Python::attach(|py| -> PyResult<String> {
                let text = self
                    .0
                    .bind(py)
                    .call_method1("action_text", (state.bind(py), action))?;
                text.extract()
            })
        });
        // An exception while an action is named does no harm to the game: its number is a name too.
        text.and_then(Result::ok).unwrap_or_else(|| action.to_string())
    }

    fn report(&self, fault: &Fault) {
        Python::attach(|py| {
            if let Err(error) = self.0.bind(py).call_method1("report", (fault.to_string(),)) {
                error.print(py);
            }
        });
    }
}

/// Gives this process a game of the user's own. `description` is JSON, `rules` the object with the methods.
#[pyfunction]
pub fn add_own_game(description: &str, rules: Py<PyAny>) -> PyResult<()> {
    let wrong = |error: &dyn std::fmt::Display| PositionError::new_err(error.to_string());
    let description: Description = serde_json::from_str(description).map_err(|error| wrong(&error))?;
    outside::add(description, Box::new(PythonRules(rules))).map_err(|error| wrong(&error))
}
