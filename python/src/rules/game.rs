//! The class `Game`: facts about a game, expansion of rows, symmetries of rows.

use std::sync::Arc;

use games::{Action, Symmetry, registry};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray4, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::{prelude::*, types::PyDict};
use search::GameKey;
use serde_json::Value;

use super::{Batch, Spec, State, json_fields, json_of, python_of, table};
use crate::error::{PositionError, RowError};

/// Names of all games.
#[pyfunction(name = "games")]
pub fn game_names() -> Vec<&'static str> {
    registry::NAMES.to_vec()
}

/// A game with its rules and the representation of its rows.
#[pyclass(frozen, module = "minuet")]
#[derive(Clone)]
pub struct Game {
    pub spec: Arc<Spec>,
}

#[pymethods]
impl Game {
    #[new]
    #[pyo3(signature = (name, options=None, **rules))]
    fn new(name: &str, options: Option<u32>, rules: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let spec = Arc::new(Spec::new(name, options, json_fields(rules)?)?);
        Ok(Self { spec })
    }

    /// Name of the game.
    #[getter]
    fn name(&self) -> &'static str {
        self.spec.game.name
    }

    /// Number of players, 1 or 2.
    #[getter]
    fn players(&self) -> u8 {
        self.spec.game.players
    }

    /// Number of action ids, and of policy entries.
    #[getter]
    fn actions(&self) -> u32 {
        self.spec.layout.actions
    }

    /// Number of symmetries, the identity included.
    #[getter]
    fn symmetries(&self) -> u8 {
        self.spec.symmetries
    }

    /// Number of the representation.
    #[getter]
    fn options(&self) -> u32 {
        self.spec.layout.options
    }

    /// Rules of the game.
    #[getter]
    fn rules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &self.spec.rules)
    }

    /// Row layout, as in a checkpoint's manifest.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python_of(py, &self.spec.layout)
    }

    /// Number of values of every row. None if rows differ in length.
    #[getter]
    fn row_length(&self) -> Option<usize> {
        self.spec.layout.row_len()
    }

    /// Largest number of values of a row.
    #[getter]
    fn max_row_length(&self) -> usize {
        *self.spec.layout.row_lengths().end()
    }

    /// Number of ranks of a plane. None if rows are not planes.
    #[getter]
    fn height(&self) -> Option<u32> {
        self.spec.layout.stack().ok().map(|stack| stack.height)
    }

    /// Number of files of a plane. None if rows are not planes.
    #[getter]
    fn width(&self) -> Option<u32> {
        self.spec.layout.stack().ok().map(|stack| stack.width)
    }

    /// Number of planes that a row expands to. None if rows are not planes.
    #[getter]
    fn planes(&self) -> Option<u32> {
        self.spec.layout.stack().ok().map(|stack| stack.planes)
    }

    /// State that a game begins in: the usual start, or a position as text (a FEN) or as the game's JSON form.
    #[pyo3(signature = (position=None, **fields))]
    fn start(
        &self,
        position: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<State> {
        let position = position.map(json_of).transpose()?;
        let state = self.spec.start(position.as_ref(), &json_fields(fields)?)?;
        Ok(State::new(self.spec.clone(), state))
    }

    /// Start of a problem of a level and kind, and the actions of a known solution. `seed` and `number` determine all random draws.
    /// With `held_out` it is a problem that self-play never draws, otherwise one that self-play may draw.
    #[pyo3(signature = (level, kind="draw", *, seed=0, number=0, held_out=false))]
    fn problem(
        &self,
        py: Python<'_>,
        level: i64,
        kind: &str,
        seed: u64,
        number: u64,
        held_out: bool,
    ) -> PyResult<(State, Vec<Action>)> {
        let key = GameKey {
            run_seed: seed,
            game: number,
        };
        let (state, solution) = py
            .detach(|| self.spec.problem(level, kind, key, held_out))
            .map_err(PositionError::new_err)?;
        Ok((State::new(self.spec.clone(), state), solution))
    }

    /// Batch of `size` states at the usual start.
    fn batch(&self, size: usize) -> PyResult<Batch> {
        let start = self.spec.start(None, &serde_json::Map::new())?;
        Ok(Batch::of(
            self.spec.clone(),
            (0..size).map(|_| start.copy()).collect(),
        ))
    }

    /// Planes of rows: float32 [n, planes, height, width] from uint32 [n, row_length], by the reference expansion.
    fn expand<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray4<f32>>> {
        let (count, width) = (rows.shape()[0], rows.shape()[1]);
        let rows = rows.as_array();
        let rows = (0..count).map(|at| rows.row(at).to_vec());
        expand(py, &self.spec, rows)
            .map_err(|error| RowError::new_err(format!("the rows are uint32 [{count}, {width}]: {error}")))
    }

    /// Inputs of a network for rows that lie back to back, uint32, of the lengths `row_lengths`, uint32 [n]: int32 arrays by the names
    /// that the inputs of the ONNX graph have.
    fn inputs<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray1<'py, u32>,
        row_lengths: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (rows, lengths) = (rows.as_array().to_vec(), row_lengths.as_array().to_vec());
        let mut rest = rows.as_slice();
        let mut expander = self.spec.layout.codec().expander();
        for (at, &length) in lengths.iter().enumerate() {
            let Some((row, others)) = rest.split_at_checked(length as usize) else {
                let found = rows.len();
                return Err(RowError::new_err(format!(
                    "row {at} ends beyond the {found} values of the rows"
                )));
            };
            rest = others;
            expander.push(row).map_err(wrong_row(at))?;
        }
        if !rest.is_empty() {
            let left = rest.len();
            return Err(RowError::new_err(format!(
                "{left} values of the rows lie behind the last row"
            )));
        }
        let inputs = PyDict::new(py);
        for input in expander.inputs() {
            let array = PyArray1::from_slice(py, input.numbers).reshape(input.shape())?;
            inputs.set_item(input.name, array)?;
        }
        Ok(inputs)
    }

    /// Raises RowError if a row of uint32 [n, row_length] is not a row of this game.
    fn check_rows(&self, rows: PyReadonlyArray2<'_, u32>) -> PyResult<()> {
        for (at, row) in rows.as_array().rows().into_iter().enumerate() {
            self.spec.layout.validate(&row.to_vec()).map_err(wrong_row(at))?;
        }
        Ok(())
    }

    /// Images of rows in a symmetry, uint32 [n, row_length]. Symmetry 0 is the identity.
    fn turn_rows<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, u32>,
        symmetry: u8,
    ) -> PyResult<Bound<'py, PyArray2<u32>>> {
        self.check_symmetry(symmetry)?;
        let (count, width) = (rows.shape()[0], rows.shape()[1]);
        let mut turned = Vec::with_capacity(count * width);
        for (at, row) in rows.as_array().rows().into_iter().enumerate() {
            let begin = turned.len();
            turned.extend(row);
            let row = &mut turned[begin..];
            self.spec.layout.validate(row).map_err(wrong_row(at))?;
            self.spec.maps.turn_row(Symmetry(symmetry), row);
        }
        table(py, turned, count, width)
    }

    /// Image of each policy entry in a symmetry, uint32 [actions].
    fn turn_entries<'py>(&self, py: Python<'py>, symmetry: u8) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.check_symmetry(symmetry)?;
        let entries = 0..self.spec.layout.actions;
        let turned: Vec<u32> = entries
            .map(|entry| self.spec.maps.turn_action(Symmetry(symmetry), entry))
            .collect();
        Ok(turned.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!(
            "minuet.Game({:?}, options={})",
            self.spec.game.name, self.spec.layout.options
        )
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.spec.is_like(&other.spec)
    }

    /// Arguments that make an equal game in another process.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((&'static str, u32), Bound<'py, PyAny>)> {
        let rules = match &self.spec.rules {
            Value::Object(rules) => python_of(py, rules)?,
            _ => PyDict::new(py).into_any(),
        };
        Ok(((self.spec.game.name, self.spec.layout.options), rules))
    }
}

impl Game {
    fn check_symmetry(&self, symmetry: u8) -> PyResult<()> {
        if symmetry < self.spec.symmetries {
            return Ok(());
        }
        let (name, count) = (self.spec.game.name, self.spec.symmetries);
        Err(RowError::new_err(format!(
            "{name} has {count} symmetries, symmetry {symmetry} is none of them"
        )))
    }
}

/// Exception for the row of this number.
fn wrong_row(at: usize) -> impl Fn(games::RowError) -> PyErr {
    move |error| RowError::new_err(format!("row {at}: {error}"))
}

/// Planes of rows.
pub fn expand<'py>(
    py: Python<'py>,
    spec: &Spec,
    rows: impl ExactSizeIterator<Item = Vec<u32>> + Send,
) -> Result<Bound<'py, PyArray4<f32>>, String> {
    let stack = spec.layout.stack().map_err(|error| error.to_string())?;
    let [planes, height, width] = stack.shape();
    let (count, length) = (rows.len(), stack.tensor_len());
    let tensors = py.detach(|| {
        let mut tensors = vec![0.0; count * length];
        for (at, (tensor, row)) in tensors.chunks_exact_mut(length).zip(rows).enumerate() {
            let expanded = stack.expand(&row, tensor);
            expanded.map_err(|error| format!("row {at}: {error}"))?;
        }
        Ok::<_, String>(tensors)
    })?;
    PyArray1::from_vec(py, tensors)
        .reshape([count, planes, height, width])
        .map_err(|error| error.to_string())
}
