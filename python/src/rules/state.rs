//! The class `State`: one state of a game.

use std::sync::Arc;

use games::{Action, Symmetry, erased::AnyState, terminal::Style};
use numpy::{IntoPyArray, PyArray1, PyArray3, PyArrayMethods};
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};

use super::{Batch, Game, Spec, json_of};
use crate::error::{IllegalActionError, RowError};

/// A state of a game, with the history that its rules need.
#[pyclass(module = "minuet")]
pub struct State {
    pub spec: Arc<Spec>,
    pub state: Box<dyn AnyState>,
}

impl State {
    pub fn new(spec: Arc<Spec>, state: Box<dyn AnyState>) -> Self {
        Self { spec, state }
    }

    fn legal(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        self.state.legal_actions(&mut actions);
        actions
    }

    fn symmetry(&self, symmetry: u8) -> PyResult<Symmetry> {
        if self.state.allows(Symmetry(symmetry)) {
            return Ok(Symmetry(symmetry));
        }
        Err(RowError::new_err(format!(
            "symmetry {symmetry} does not apply to this state of {}",
            self.spec.game.name
        )))
    }
}

#[pymethods]
impl State {
    /// Game of the state.
    #[getter]
    fn game(&self) -> Game {
        Game {
            spec: self.spec.clone(),
        }
    }

    /// Player to act: 0 for the first, 1 for the second. After the end, the player who would act next.
    #[getter]
    fn to_move(&self) -> usize {
        self.state.to_move().index()
    }

    /// "first", "second", "draw" or a word of the game's own. None while the game runs.
    #[getter]
    fn outcome(&self) -> Option<&'static str> {
        self.state.outcome_name()
    }

    /// Value of the outcome for the first player, in [-1, 1]. None while the game runs.
    #[getter]
    fn value(&self) -> Option<f32> {
        self.state.outcome().map(|outcome| outcome.value().get())
    }

    /// Name of the way in which the game ended, e.g. "repetition". None while the game runs.
    #[getter]
    fn ending(&self) -> Option<&'static str> {
        self.state.ending()
    }

    /// Position as text, e.g. a FEN. `Game.start` reads it.
    #[getter]
    fn position(&self) -> String {
        self.state.position()
    }

    /// Ids of the legal actions, ascending: uint32 [k].
    fn legal_actions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.legal().into_pyarray(py)
    }

    /// Policy entries of the legal actions, in the order of `legal_actions`: uint32 [k].
    #[pyo3(signature = (symmetry=0))]
    fn legal_entries<'py>(&self, py: Python<'py>, symmetry: u8) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let symmetry = self.symmetry(symmetry)?;
        let mut entries = self.legal();
        for entry in &mut entries {
            *entry = self.state.policy_index(symmetry, *entry);
        }
        Ok(entries.into_pyarray(py))
    }

    /// True for the policy entries of legal actions: bool [actions].
    #[pyo3(signature = (symmetry=0))]
    fn legal_mask<'py>(&self, py: Python<'py>, symmetry: u8) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let symmetry = self.symmetry(symmetry)?;
        let mut mask = vec![false; self.spec.layout.actions as usize];
        for action in self.legal() {
            if let Some(entry) = mask.get_mut(self.state.policy_index(symmetry, action) as usize) {
                *entry = true;
            }
        }
        Ok(mask.into_pyarray(py))
    }

    /// Plays an action id, or a turn as people write it.
    fn play(&mut self, action: &Bound<'_, PyAny>) -> PyResult<()> {
        let wrong = |error: games::IllegalAction| IllegalActionError::new_err(error.to_string());
        let Ok(text) = action.cast::<PyString>() else {
            return self.state.play(action.extract()?).map_err(wrong);
        };
        // A turn is played whole or not at all.
        let mut next = self.state.copy();
        let turn = self.state.read_turn(text.to_str()?);
        for action in turn.map_err(IllegalActionError::new_err)? {
            next.play(action).map_err(wrong)?;
        }
        self.state = next;
        Ok(())
    }

    /// Copy of the state, independent of this one.
    fn copy(&self) -> Self {
        Self::new(self.spec.clone(), self.state.copy())
    }

    fn __copy__(&self) -> Self {
        self.copy()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyDict>) -> Self {
        self.copy()
    }

    /// Numbers of the symmetries that apply to the state; 0 is the identity.
    fn symmetries(&self) -> Vec<u8> {
        let all = 0..self.spec.symmetries;
        all.filter(|&symmetry| self.state.allows(Symmetry(symmetry)))
            .collect()
    }

    /// Row of the state's image in a symmetry: uint32 [row_length].
    #[pyo3(signature = (symmetry=0))]
    fn row<'py>(&self, py: Python<'py>, symmetry: u8) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let mut row = Vec::new();
        self.state.write_row(self.symmetry(symmetry)?, &mut row);
        Ok(row.into_pyarray(py))
    }

    /// Planes of the state's image in a symmetry: float32 [planes, height, width].
    #[pyo3(signature = (symmetry=0))]
    fn planes<'py>(&self, py: Python<'py>, symmetry: u8) -> PyResult<Bound<'py, PyArray3<f32>>> {
        let wrong = |error: games::RowError| RowError::new_err(error.to_string());
        let stack = self.spec.layout.stack().map_err(wrong)?;
        let mut row = Vec::new();
        self.state.write_row(self.symmetry(symmetry)?, &mut row);
        let mut tensor = vec![0.0; stack.tensor_len()];
        stack.expand(&row, &mut tensor).map_err(wrong)?;
        PyArray1::from_vec(py, tensor).reshape(stack.shape())
    }

    /// Policy entry of an action of this state, in the state's image in a symmetry.
    #[pyo3(signature = (action, symmetry=0))]
    fn policy_entry(&self, action: Action, symmetry: u8) -> PyResult<u32> {
        let symmetry = self.symmetry(symmetry)?;
        if action >= self.spec.layout.actions {
            return Err(IllegalActionError::new_err(format!(
                "{action} is not an action id of {} (0 to {})",
                self.spec.game.name,
                self.spec.layout.actions - 1
            )));
        }
        Ok(self.state.policy_index(symmetry, action))
    }

    /// Legal action that has a policy entry.
    fn action_at(&self, entry: u32) -> PyResult<Action> {
        action_at(self.state.as_ref(), Symmetry::IDENTITY, entry).ok_or_else(|| {
            IllegalActionError::new_err(format!("policy entry {entry} belongs to no legal action here"))
        })
    }

    /// Action id of the form that `minuet rules` uses: a number, a UCI string in chess, [imp, move] in the generator game.
    fn action(&self, value: &Bound<'_, PyAny>) -> PyResult<Action> {
        self.state
            .action_from_json(&json_of(value)?)
            .map_err(IllegalActionError::new_err)
    }

    /// Actions of one player, played one after the other from this state, as people write them.
    fn notation(&self, actions: Vec<Action>) -> PyResult<String> {
        let mut played = self.state.copy();
        for &action in &actions {
            played
                .play(action)
                .map_err(|error| IllegalActionError::new_err(error.to_string()))?;
        }
        Ok(self.state.write_turn(&actions))
    }

    /// Batch that holds a copy of this state alone.
    fn batch(&self) -> Batch {
        Batch::of(self.spec.clone(), vec![self.state.copy()])
    }

    fn __str__(&self) -> String {
        self.state.draw(Style {
            ascii: true,
            ..Style::default()
        })
    }

    fn __repr__(&self) -> String {
        format!(
            "<minuet.State of {}: {}>",
            self.spec.game.name,
            self.state.position()
        )
    }
}

/// Legal action with a policy entry in a symmetry.
pub fn action_at(state: &dyn AnyState, symmetry: Symmetry, entry: u32) -> Option<Action> {
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    actions
        .into_iter()
        .find(|&action| state.policy_index(symmetry, action) == entry)
}
