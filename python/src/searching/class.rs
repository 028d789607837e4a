//! The class `Search`.

use std::sync::Arc;

use games::Action;
use numpy::{IntoPyArray, PyArray1};
use pyo3::{prelude::*, types::PyDict};
use search::{Decision, GameKey, Settings};
use serde_json::{Value, json};

use super::{
    erased::{AnySearch, begin},
    run,
};
use crate::{
    error::{EvaluationError, IllegalActionError, SettingsError},
    rules::{Game, Spec, State, json_fields},
};

/// Largest memory of one tree in bytes; a full tree takes no more leaves.
const TREE_BYTES: usize = 1 << 30;

/// The search of one game. Its decision node is a state; visits grow a tree below it.
#[pyclass(module = "minuet")]
pub struct Search {
    pub spec: Arc<Spec>,
    /// `None` while the search runs, so that an evaluator cannot change it.
    pub inner: Option<Box<dyn AnySearch>>,
    pub evaluator: Py<PyAny>,
}

/// Settings of self-play without noise, with the fields that Python gave in place of theirs.
fn settings(visits: u32, given: Option<&Bound<'_, PyDict>>) -> PyResult<Settings> {
    let usual = Settings {
        noise_fraction: 0.0,
        visits,
        ..Settings::default()
    };
    let mut table = serde_json::to_value(usual).unwrap_or(json!({}));
    if let Value::Object(fields) = &mut table {
        fields.extend(json_fields(given)?);
    }
    let settings: Settings =
        serde_json::from_value(table).map_err(|error| SettingsError::new_err(format!("search: {error}")))?;
    settings
        .check()
        .map_err(|error| SettingsError::new_err(error.to_string()))?;
    Ok(Settings {
        tree_bytes: TREE_BYTES,
        ..settings
    })
}

impl Search {
    pub fn search(&self) -> PyResult<&dyn AnySearch> {
        self.inner.as_deref().ok_or_else(running)
    }

    fn decision(&self) -> PyResult<Decision> {
        Ok(self.search()?.decision())
    }
}

/// Exception for the use of a search by its own evaluator.
pub fn running() -> PyErr {
    EvaluationError::new_err("the search is running; its evaluator cannot use it")
}

#[pymethods]
impl Search {
    #[new]
    #[pyo3(signature = (state, evaluator, visits=100, *, seed=0, game=0, **settings))]
    fn new(
        state: PyRef<'_, State>,
        evaluator: Py<PyAny>,
        visits: u32,
        seed: u64,
        game: u64,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let settings = self::settings(visits, settings)?;
        let key = GameKey { run_seed: seed, game };
        let begun = begin(state.spec.game.name, state.state.as_ref(), settings, key);
        Ok(Self {
            spec: state.spec.clone(),
            inner: Some(begun.ok_or_else(running)?),
            evaluator,
        })
    }

    /// Searches until the decision's visits are done. The evaluator is called once for each gather, with a `Batch` of leaves.
    fn run(slf: Bound<'_, Self>) -> PyResult<()> {
        run::run(slf.py(), std::slice::from_ref(&slf))
    }

    /// Game that is searched.
    #[getter]
    fn game(&self) -> Game {
        Game {
            spec: self.spec.clone(),
        }
    }

    /// State of the decision node.
    #[getter]
    fn state(&self) -> PyResult<State> {
        Ok(State::new(self.spec.clone(), self.search()?.state()))
    }

    /// True if the decision needs no more visits, or the game is over.
    #[getter]
    fn is_decided(&self) -> PyResult<bool> {
        Ok(self.search()?.is_decided())
    }

    /// Visits of this decision so far.
    #[getter]
    fn visits_done(&self) -> PyResult<u32> {
        Ok(self.search()?.visits_done())
    }

    /// Legal actions of the decision node, ascending: uint32 [k]. The arrays below have this order.
    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(self.decision()?.actions.into_pyarray(py))
    }

    /// Visits of each action: uint32 [k].
    #[getter]
    fn visits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        Ok(self.decision()?.visits.into_pyarray(py))
    }

    /// Priors of the evaluator, without noise: float32 [k].
    #[getter]
    fn priors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(self.decision()?.priors.into_pyarray(py))
    }

    /// Mean value of each action for the player to act: float32 [k].
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let values: Vec<f32> = self
            .decision()?
            .values
            .into_iter()
            .map(|value| value.get())
            .collect();
        Ok(values.into_pyarray(py))
    }

    /// Value of the decision node for the player to act, in [-1, 1].
    #[getter]
    fn value(&self) -> PyResult<f32> {
        Ok(self.decision()?.value.get())
    }

    /// Most visited line, as action ids.
    fn principal_variation(&self) -> PyResult<Vec<Action>> {
        Ok(self.search()?.principal_variation())
    }

    /// Action drawn with probability proportional to visits ** (1 / temperature); the most visited one at temperature 0. None
    /// where the game is over or nothing is searched yet.
    #[pyo3(signature = (temperature=0.0))]
    fn choose(&self, temperature: f32) -> PyResult<Option<Action>> {
        Ok(self.search()?.choose(temperature))
    }

    /// Plays an action and begins the decision after it.
    fn advance(&mut self, action: Action) -> PyResult<()> {
        let search = self.inner.as_deref_mut().ok_or_else(running)?;
        search
            .advance(action)
            .map_err(|error| IllegalActionError::new_err(error.to_string()))
    }

    /// Changes the visits of each decision; with a larger number a decided search continues.
    fn set_visits(&mut self, visits: u32) -> PyResult<()> {
        if visits == 0 || visits > Settings::MAX_VISITS {
            return Err(SettingsError::new_err(format!(
                "visits must be between 1 and {}",
                Settings::MAX_VISITS
            )));
        }
        self.inner.as_deref_mut().ok_or_else(running)?.set_visits(visits);
        Ok(())
    }

    fn __repr__(&self) -> String {
        match &self.inner {
            Some(search) => format!(
                "<minuet.Search of {}: {} visits>",
                self.spec.game.name,
                search.visits_done()
            ),
            None => format!("<minuet.Search of {}: running>", self.spec.game.name),
        }
    }
}
