//! The class `Batch`: many states of one game, with arrays of all their rows, planes and legal actions.

use std::sync::Arc;

use games::{Action, Symmetry};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray4, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::{exceptions::PyIndexError, prelude::*};

use super::{
    Game, State,
    erased::{AnyState, Spec},
    game::expand,
    state::action_at,
    table,
};
use crate::error::{EvaluationError, IllegalActionError, PositionError, RowError};

/// Many states of one game. Rows, planes and policy entries are those of each state's image in its symmetry, which is the
/// identity everywhere but in the leaves that a search asks about.
#[pyclass(module = "minuet")]
pub struct Batch {
    pub spec: Arc<Spec>,
    pub states: Vec<Box<dyn AnyState>>,
    pub symmetries: Vec<Symmetry>,
}

impl Batch {
    pub fn of(spec: Arc<Spec>, states: Vec<Box<dyn AnyState>>) -> Self {
        let symmetries = vec![Symmetry::IDENTITY; states.len()];
        Self {
            spec,
            states,
            symmetries,
        }
    }

    pub fn push(&mut self, state: Box<dyn AnyState>, symmetry: Symmetry) {
        self.states.push(state);
        self.symmetries.push(symmetry);
    }

    fn each(&self) -> impl Iterator<Item = (&dyn AnyState, Symmetry)> {
        self.states
            .iter()
            .map(AsRef::as_ref)
            .zip(self.symmetries.iter().copied())
    }

    /// Rows back to back, and the length of each.
    pub fn flat_rows(&self) -> (Vec<u32>, Vec<u32>) {
        let mut rows = Vec::with_capacity(self.states.len() * self.spec.layout.row_len().unwrap_or(0));
        let mut lengths = Vec::with_capacity(self.states.len());
        for (state, symmetry) in self.each() {
            let begin = rows.len();
            state.write_row(symmetry, &mut rows);
            lengths.push((rows.len() - begin) as u32);
        }
        (rows, lengths)
    }

    /// Policy entries of the legal actions back to back, and their number in each state.
    pub fn flat_legal(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut entries, mut counts) = (Vec::new(), Vec::with_capacity(self.states.len()));
        let mut actions = Vec::new();
        for (state, symmetry) in self.each() {
            state.legal_actions(&mut actions);
            entries.extend(actions.iter().map(|&action| state.policy_index(symmetry, action)));
            counts.push(actions.len() as u32);
        }
        (entries, counts)
    }

    fn place(&self, index: isize) -> PyResult<usize> {
        let length = self.states.len();
        let place = if index < 0 { index + length as isize } else { index };
        usize::try_from(place)
            .ok()
            .filter(|&place| place < length)
            .ok_or_else(|| PyIndexError::new_err(format!("there is no state {index} in a batch of {length}")))
    }
}

#[pymethods]
impl Batch {
    #[new]
    fn new(states: Vec<PyRef<'_, State>>) -> PyResult<Self> {
        let Some(first) = states.first() else {
            return Err(PositionError::new_err(
                "a batch of no states has no game; use Game.batch(0)",
            ));
        };
        if let Some(at) = states.iter().position(|state| !state.spec.is_like(&first.spec)) {
            return Err(PositionError::new_err(format!(
                "state {at} is of {}, with other rules or rows than state 0 of {}",
                states[at].spec.name, first.spec.name
            )));
        }
        Ok(Self::of(
            first.spec.clone(),
            states.iter().map(|state| state.state.copy()).collect(),
        ))
    }

    /// Game of the states.
    #[getter]
    fn game(&self) -> Game {
        Game {
            spec: self.spec.clone(),
        }
    }

    fn __len__(&self) -> usize {
        self.states.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<State> {
        let place = self.place(index)?;
        Ok(State::new(self.spec.clone(), self.states[place].copy()))
    }

    fn __setitem__(&mut self, index: isize, state: PyRef<'_, State>) -> PyResult<()> {
        let place = self.place(index)?;
        if !state.spec.is_like(&self.spec) {
            return Err(PositionError::new_err(format!(
                "the state is of {}, with other rules or rows than the batch of {}",
                state.spec.name, self.spec.name
            )));
        }
        self.states[place] = state.state.copy();
        Ok(())
    }

    /// Rows: uint32 [n, row_length]; one flat array where rows differ in length (see `row_lengths`).
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (rows, _) = py.detach(|| self.flat_rows());
        match self.spec.layout.row_len() {
            Some(width) => Ok(table(py, rows, self.states.len(), width)?.into_any()),
            None => Ok(rows.into_pyarray(py).into_any()),
        }
    }

    /// Length of each row: uint32 [n].
    fn row_lengths<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        let lengths = match self.spec.layout.row_len() {
            Some(width) => vec![width as u32; self.states.len()],
            None => py.detach(|| self.flat_rows()).1,
        };
        lengths.into_pyarray(py)
    }

    /// Planes: float32 [n, planes, 8, 8].
    fn planes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray4<f32>>> {
        expand(py, &self.spec, self.states.len(), |tensor, at| {
            let mut row = Vec::new();
            self.states[at].write_row(self.symmetries[at], &mut row);
            tensor(&row)
        })
        .map_err(RowError::new_err)
    }

    /// Policy entries of the legal actions back to back, uint32 [sum of counts], and their counts, uint32 [n].
    fn legal<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>) {
        let (entries, counts) = py.detach(|| self.flat_legal());
        (entries.into_pyarray(py), counts.into_pyarray(py))
    }

    /// True for the policy entries of legal actions: bool [n, actions].
    fn legal_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<bool>>> {
        let width = self.spec.actions as usize;
        let mask = py.detach(|| {
            let mut mask = vec![false; self.states.len() * width];
            let mut actions = Vec::new();
            for ((state, symmetry), mask) in self.each().zip(mask.chunks_exact_mut(width.max(1))) {
                state.legal_actions(&mut actions);
                for &action in &actions {
                    if let Some(entry) = mask.get_mut(state.policy_index(symmetry, action) as usize) {
                        *entry = true;
                    }
                }
            }
            mask
        });
        table(py, mask, self.states.len(), width)
    }

    /// Plays one policy entry in each state: uint32 [n]. The entries of finished games are ignored. All are played or none.
    fn play(&mut self, py: Python<'_>, entries: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        let entries: Vec<u32> = entries.as_array().to_vec();
        if entries.len() != self.states.len() {
            return Err(IllegalActionError::new_err(format!(
                "{} entries for a batch of {} states",
                entries.len(),
                self.states.len()
            )));
        }
        py.detach(|| {
            let found = self
                .each()
                .zip(&entries)
                .enumerate()
                .map(|(at, ((state, symmetry), &entry))| {
                    if state.outcome().is_some() {
                        return Ok(None);
                    }
                    match action_at(state, symmetry, entry) {
                        Some(action) => Ok(Some(action)),
                        None => Err(format!(
                            "state {at}: policy entry {entry} belongs to no legal action"
                        )),
                    }
                });
            let actions: Vec<Option<Action>> = found.collect::<Result<_, String>>()?;
            for (state, action) in self.states.iter_mut().zip(actions) {
                if let Some(action) = action {
                    state.play_legal(action);
                }
            }
            Ok(())
        })
        .map_err(|error: String| IllegalActionError::new_err(error))
    }

    /// Player to act in each state, 0 or 1: uint8 [n].
    fn to_move<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        let movers: Vec<u8> = self
            .states
            .iter()
            .map(|state| state.to_move().index() as u8)
            .collect();
        movers.into_pyarray(py)
    }

    /// Value of each outcome for the first player, NaN while the game runs: float32 [n].
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let value = |state: &dyn AnyState| state.outcome().map_or(f32::NAN, |outcome| outcome.value().get());
        let values: Vec<f32> = self.states.iter().map(|state| value(state.as_ref())).collect();
        values.into_pyarray(py)
    }

    /// Priors of the legal actions back to back, as an evaluator answers: float32 [sum of counts], from logits,
    /// float32 [n, actions], by a softmax over the legal actions of each state.
    fn priors<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let (found, wanted) = (logits.shape(), [self.states.len(), self.spec.actions as usize]);
        if found != wanted {
            return Err(EvaluationError::new_err(format!(
                "the logits are {found:?}, a batch of {} has {wanted:?}",
                self.spec.name
            )));
        }
        let logits = logits.as_array();
        let (entries, counts) = self.flat_legal();
        let mut priors = Vec::with_capacity(entries.len());
        let mut rest = entries.as_slice();
        for (row, &count) in logits.rows().into_iter().zip(&counts) {
            let (own, others) = rest.split_at(count as usize);
            rest = others;
            let most = own
                .iter()
                .map(|&entry| row[entry as usize])
                .fold(f32::NEG_INFINITY, f32::max);
            let begin = priors.len();
            priors.extend(own.iter().map(|&entry| (row[entry as usize] - most).exp()));
            let sum: f32 = priors[begin..].iter().sum();
            priors[begin..].iter_mut().for_each(|prior| *prior /= sum);
        }
        Ok(priors.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        format!(
            "<minuet.Batch of {} states of {}>",
            self.states.len(),
            self.spec.name
        )
    }
}
