//! Many searches, driven to their decisions with one evaluator: gather all leaves, evaluate them in one call, apply.

use std::sync::Arc;

use numpy::{PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn};
use pyo3::{prelude::*, types::PyDict};

use super::{Search, class::running, erased::AnySearch};
use crate::{
    error::EvaluationError,
    rules::{Batch, Spec},
};

/// Searches every game until its decision's visits are done. All leaves of a round are evaluated in one call. The searches must
/// have the same game and the same evaluator.
#[pyfunction]
pub fn run_searches(py: Python<'_>, searches: Vec<Bound<'_, Search>>) -> PyResult<()> {
    run(py, &searches)
}

/// See [`run_searches`].
pub fn run(py: Python<'_>, searches: &[Bound<'_, Search>]) -> PyResult<()> {
    let Some(first) = searches.first() else {
        return Ok(());
    };
    let (spec, evaluator) = {
        let first = first.borrow();
        (first.spec.clone(), first.evaluator.clone_ref(py))
    };
    let mut taken = Vec::with_capacity(searches.len());
    let outcome = take(py, searches, &spec, &evaluator, &mut taken)
        .and_then(|()| rounds(py, &spec, evaluator.bind(py), &mut taken));
    for (search, mut inner) in searches.iter().zip(taken) {
        if outcome.is_err() {
            inner.abandon();
        }
        search.borrow_mut().inner = Some(inner);
    }
    outcome
}

/// Takes the searches out of their Python objects.
fn take(
    py: Python<'_>,
    searches: &[Bound<'_, Search>],
    spec: &Spec,
    evaluator: &Py<PyAny>,
    taken: &mut Vec<Box<dyn AnySearch>>,
) -> PyResult<()> {
    for (at, search) in searches.iter().enumerate() {
        let mut search = search.borrow_mut();
        if !search.spec.is_like(spec) || !search.evaluator.bind(py).is(evaluator.bind(py)) {
            return Err(EvaluationError::new_err(format!(
                "search {at} has another game or evaluator than search 0"
            )));
        }
        taken.push(search.inner.take().ok_or_else(running)?);
    }
    Ok(())
}

/// Gathers, evaluates and applies until all searches are decided.
fn rounds(
    py: Python<'_>,
    spec: &Arc<Spec>,
    evaluator: &Bound<'_, PyAny>,
    searches: &mut [Box<dyn AnySearch>],
) -> PyResult<()> {
    loop {
        py.check_signals()?;
        let (leaves, ends) = py.detach(|| gather(spec, searches));
        if leaves.len() == 0 {
            if searches.iter().all(|search| search.is_decided()) {
                return Ok(());
            }
            continue;
        }
        let counts = leaves.legal_actions().counts.clone();
        let answer = evaluator.call1((Bound::new(py, leaves)?,))?;
        let (priors, values) = answer
            .extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()
            .map_err(|_| {
                EvaluationError::new_err(
                    "an evaluator returns (priors, values); this one returned something else",
                )
            })?;
        let (priors, values) = (floats(&priors)?, floats(&values)?);
        py.detach(|| apply(searches, &ends, &counts, &priors, &values))
            .map_err(EvaluationError::new_err)?;
    }
}

/// Gathers from all undecided searches. Returns the leaves, and the end of each search's part.
fn gather(spec: &Arc<Spec>, searches: &mut [Box<dyn AnySearch>]) -> (Batch, Vec<usize>) {
    let mut leaves = Batch::of(spec.clone(), Vec::new());
    let ends = searches.iter_mut().map(|search| {
        if !search.is_decided() {
            search.gather(&mut |state, symmetry| leaves.push(state, symmetry));
        }
        leaves.len()
    });
    let ends = ends.collect();
    (leaves, ends)
}

fn apply(
    searches: &mut [Box<dyn AnySearch>],
    ends: &[usize],
    counts: &[u32],
    priors: &[f32],
    values: &[f32],
) -> Result<(), String> {
    let total: usize = counts.iter().map(|&count| count as usize).sum();
    if values.len() != counts.len() {
        return Err(format!(
            "the evaluator gave {} values for {} states",
            values.len(),
            counts.len()
        ));
    }
    if priors.len() != total {
        return Err(format!(
            "the evaluator gave {} priors for {total} legal actions",
            priors.len()
        ));
    }
    let (mut begin, mut first) = (0, 0);
    for (search, &end) in searches.iter_mut().zip(ends) {
        let counts = &counts[begin..end];
        let last = first + counts.iter().map(|&count| count as usize).sum::<usize>();
        search
            .apply(&priors[first..last], counts, &values[begin..end])
            .map_err(|error| format!("the evaluator's answer does not fit: {error}"))?;
        (begin, first) = (end, last);
    }
    Ok(())
}

/// Numbers of any array-like object as contiguous f32.
fn floats(numbers: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let py = numbers.py();
    let numpy = py.import("numpy")?;
    let options = PyDict::new(py);
    options.set_item("dtype", numpy.getattr("float32")?)?;
    let array = numpy.call_method("ascontiguousarray", (numbers,), Some(&options))?;
    let array: PyReadonlyArrayDyn<'_, f32> = array.cast_into::<PyArrayDyn<f32>>()?.readonly();
    Ok(array.as_slice()?.to_vec())
}
