//! The class `Batch`: many states of one game, with arrays of all their rows, planes and legal actions.

use std::sync::{Arc, OnceLock};

use games::{Action, Symmetry, erased::AnyState};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArray4, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::{exceptions::PyIndexError, prelude::*};

use super::{Game, Spec, State, game::expand, table};
use crate::error::{EvaluationError, IllegalActionError, PositionError, RowError};

/// Many states of one game. Rows, planes and policy entries are those of each state's image in its symmetry, which is the
/// identity everywhere but in the leaves that a search asks about.
#[pyclass(module = "minuet")]
pub struct Batch {
    spec: Arc<Spec>,
    states: Vec<Box<dyn AnyState>>,
    symmetries: Vec<Symmetry>,
    /// Legal actions of all states. Empty after a state has changed.
    legal: OnceLock<Legal>,
}

/// Legal actions of the states of a batch, back to back.
#[derive(Debug, Default)]
pub struct Legal {
    actions: Vec<Action>,
    /// Policy entry of each action, in the symmetry of its state.
    pub entries: Vec<u32>,
    /// Number of actions of each state.
    pub counts: Vec<u32>,
}

impl Legal {
    /// Place of each state's actions.
    fn places(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.counts.iter().scan(0, |begin, &count| {
            let place = *begin..*begin + count as usize;
            *begin = place.end;
            Some(place)
        })
    }
}

impl Batch {
    pub fn of(spec: Arc<Spec>, states: Vec<Box<dyn AnyState>>) -> Self {
        Self {
            symmetries: vec![Symmetry::IDENTITY; states.len()],
            spec,
            states,
            legal: OnceLock::new(),
        }
    }

    pub fn push(&mut self, state: Box<dyn AnyState>, symmetry: Symmetry) {
        self.states.push(state);
        self.symmetries.push(symmetry);
        self.legal.take();
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.states.len()
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

    /// Legal actions of all states. They are computed once, until a state changes.
    pub fn legal_actions(&self) -> &Legal {
        self.legal.get_or_init(|| {
            let mut legal = Legal::default();
            let mut actions = Vec::new();
            for (state, symmetry) in self.each() {
                state.legal_actions(&mut actions);
                legal
                    .entries
                    .extend(actions.iter().map(|&action| state.policy_index(symmetry, action)));
                legal.counts.push(actions.len() as u32);
                legal.actions.extend_from_slice(&actions);
            }
            legal
        })
    }

    /// Action of each state that has the policy entry of the same place; `None` for states that are over.
    fn chosen(&self, entries: &[u32]) -> Result<Vec<Option<Action>>, String> {
        let legal = self.legal_actions();
        let states = self.states.iter().zip(legal.places()).zip(entries).enumerate();
        states
            .map(|(at, ((state, place), &entry))| {
                // Without legal actions a game is over, but for Paco Ŝako under its rules of compatibility.
                if place.is_empty() && state.outcome().is_some() {
                    return Ok(None);
                }
                let found = legal.entries[place.clone()]
                    .iter()
                    .position(|&legal| legal == entry);
                match found {
                    Some(found) => Ok(Some(legal.actions[place.start + found])),
                    None => Err(format!(
                        "state {at}: policy entry {entry} belongs to no legal action"
                    )),
                }
            })
            .collect()
    }

    /// Places of the states that are over, ascending.
    fn finished(&self) -> Vec<u32> {
        // Only states without legal actions can be over.
        let counts = self.legal_actions().counts.iter();
        let states = self.states.iter().zip(counts).zip(0..);
        states
            .filter(|((state, count), _)| **count == 0 && state.outcome().is_some())
            .map(|(_, place)| place)
            .collect()
    }

    /// Puts copies of `start` at places that ascend, whose states have no legal actions. The legal actions of the others are kept.
    fn replace(&mut self, places: &[u32], start: &dyn AnyState) {
        let mut opening = Vec::new();
        start.legal_actions(&mut opening);
        let entry = |&action: &Action| start.policy_index(Symmetry::IDENTITY, action);
        let entries: Vec<u32> = opening.iter().map(entry).collect();
        let before = self.legal.take().unwrap_or_default();
        let mut legal = Legal::default();
        let mut places = places.iter().map(|&place| place as usize).peekable();
        for (at, own) in before.places().enumerate() {
            let (actions, entries) = if places.next_if_eq(&at).is_some() {
                self.states[at] = start.copy();
                self.symmetries[at] = Symmetry::IDENTITY;
                (opening.as_slice(), entries.as_slice())
            } else {
                (&before.actions[own.clone()], &before.entries[own])
            };
            legal.actions.extend_from_slice(actions);
            legal.entries.extend_from_slice(entries);
            legal.counts.push(actions.len() as u32);
        }
        self.legal = OnceLock::from(legal);
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
                states[at].spec.game.name, first.spec.game.name
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
                state.spec.game.name, self.spec.game.name
            )));
        }
        self.states[place] = state.state.copy();
        self.legal.take();
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

    /// Planes: float32 [n, planes, height, width].
    fn planes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray4<f32>>> {
        let rows = self
            .states
            .iter()
            .zip(&self.symmetries)
            .map(|(state, &symmetry)| {
                let mut row = Vec::new();
                state.write_row(symmetry, &mut row);
                row
            });
        expand(py, &self.spec, rows).map_err(RowError::new_err)
    }

    /// Policy entries of the legal actions back to back, uint32 [sum of counts], and their counts, uint32 [n].
    fn legal<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>) {
        let legal = py.detach(|| self.legal_actions());
        (
            PyArray1::from_slice(py, &legal.entries),
            PyArray1::from_slice(py, &legal.counts),
        )
    }

    /// True for the policy entries of legal actions: bool [n, actions].
    fn legal_mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<bool>>> {
        let width = self.spec.layout.actions as usize;
        let mask = py.detach(|| {
            let legal = self.legal_actions();
            let mut mask = vec![false; self.states.len() * width];
            for (mask, place) in mask.chunks_exact_mut(width.max(1)).zip(legal.places()) {
                for &entry in &legal.entries[place] {
                    if let Some(entry) = mask.get_mut(entry as usize) {
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
            let actions = self.chosen(&entries)?;
            self.legal.take();
            for (state, action) in self.states.iter_mut().zip(actions) {
                if let Some(action) = action {
                    state.play_legal(action);
                }
            }
            Ok(())
        })
        .map_err(|error: String| IllegalActionError::new_err(error))
    }

    /// Begins a new game, at the usual start, in the place of each finished one. Returns those places: uint32 [finished games].
    fn restart<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let start = self.spec.start(None, &serde_json::Map::new())?;
        let finished = py.detach(|| {
            let finished = self.finished();
            if !finished.is_empty() {
                self.replace(&finished, start.as_ref());
            }
            finished
        });
        Ok(finished.into_pyarray(py))
    }

    /// Player to act in each state, 0 or 1: uint8 [n].
    fn to_move<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        let movers = self.states.iter().map(|state| state.to_move().index() as u8);
        movers.collect::<Vec<u8>>().into_pyarray(py)
    }

    /// Value of each outcome for the first player, NaN while the game runs: float32 [n].
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let values = py.detach(|| {
            let mut values = vec![f32::NAN; self.states.len()];
            for place in self.finished() {
                let place = place as usize;
                if let Some(outcome) = self.states[place].outcome() {
                    values[place] = outcome.value().get();
                }
            }
            values
        });
        values.into_pyarray(py)
    }

    /// Priors of the legal actions back to back, as an evaluator answers: float32 [sum of counts], from logits,
    /// float32 [n, actions], by a softmax over the legal actions of each state.
    fn priors<'py>(
        &self,
        py: Python<'py>,
        logits: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let (found, wanted) = (
            logits.shape(),
            [self.states.len(), self.spec.layout.actions as usize],
        );
        if found != wanted {
            return Err(EvaluationError::new_err(format!(
                "the logits are {found:?}, a batch of {} has {wanted:?}",
                self.spec.game.name
            )));
        }
        let logits = logits.as_array();
        let legal = self.legal_actions();
        let mut priors = Vec::with_capacity(legal.entries.len());
        for (row, place) in logits.rows().into_iter().zip(legal.places()) {
            let own = &legal.entries[place];
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
            self.spec.game.name
        )
    }
}
