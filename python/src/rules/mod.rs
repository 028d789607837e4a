//! Games, states and batches of states.
//!
//! | module | content |
//! |---|---|
//! | [`spec`] | a game with its rules and representation |
//! | [`game`] | the class `Game`: facts, expansion of rows, symmetries of rows |
//! | [`state`] | the class `State` |
//! | [`batch`] | the class `Batch` |

mod batch;
mod game;
mod spec;
mod state;

pub use batch::Batch;
pub use game::{Game, game_names};
pub use spec::Spec;
pub use state::State;

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::{prelude::*, types::PyDict};
use serde_json::{Map, Value};

/// A Python value as JSON, by Python's own writer.
pub fn json_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let text: String = value
        .py()
        .import("json")?
        .call_method1("dumps", (value,))?
        .extract()?;
    serde_json::from_str(&text).map_err(|error| crate::error::Error::new_err(error.to_string()))
}

/// Keyword arguments as JSON.
pub fn json_fields(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Map<String, Value>> {
    Ok(match fields.map(|fields| json_of(fields.as_any())).transpose()? {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    })
}

/// JSON as a Python value.
pub fn python_of<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text =
        serde_json::to_string(value).map_err(|error| crate::error::Error::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// Numbers as an array of `width` columns, without a copy.
pub fn table<'py, T: numpy::Element>(
    py: Python<'py>,
    numbers: Vec<T>,
    rows: usize,
    width: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    PyArray1::from_vec(py, numbers).reshape([rows, width])
}
