//! Messages of the replay store as dictionaries of arrays. Arrays take over the memory of the message.

use numpy::IntoPyArray;
use proto::{
    ids::hex,
    v1::{Batch, Game, GameSummary, StatsReply, TargetColumn},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::rules::python_of;

/// Fields of one batch.
pub fn of_batch(py: Python<'_>, batch: Batch) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("number", batch.number)?;
    fields.set_item("game", batch.game)?;
    fields.set_item("options", batch.options)?;
    fields.set_item("positions", batch.positions)?;
    fields.set_item("rows", batch.rows.into_pyarray(py))?;
    fields.set_item("row_lengths", batch.row_lengths.into_pyarray(py))?;
    fields.set_item("visit_counts", batch.visit_counts.into_pyarray(py))?;
    fields.set_item("visit_entries", batch.visit_actions.into_pyarray(py))?;
    fields.set_item("visits", batch.visits.into_pyarray(py))?;
    fields.set_item("results", batch.results.into_pyarray(py))?;
    fields.set_item("root_values", batch.root_values.into_pyarray(py))?;
    fields.set_item("games", batch.game_sequences.into_pyarray(py))?;
    fields.set_item("plies", batch.plies.into_pyarray(py))?;
    fields.set_item("positions_inserted", batch.positions_inserted)?;
    fields.set_item("window_positions", batch.window_positions)?;
    let targets = PyDict::new(py);
    for column in batch.targets {
        targets.set_item(column.name.clone(), of_target(py, column)?)?;
    }
    fields.set_item("targets", targets)?;
    Ok(fields)
}

fn of_target(py: Python<'_>, column: TargetColumn) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    fields.set_item("numbers", column.numbers.into_pyarray(py))?;
    fields.set_item("counts", column.counts.into_pyarray(py))?;
    fields.set_item("entries", column.actions.into_pyarray(py))?;
    fields.set_item("visits", column.visits.into_pyarray(py))?;
    Ok(fields)
}

/// Fields of one stored game.
pub fn of_game(py: Python<'_>, game: Game) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    let result = game.result().as_str_name();
    fields.set_item("id", hex(&game.id))?;
    fields.set_item("game", game.game)?;
    fields.set_item("options", game.options)?;
    fields.set_item("rules", parsed(py, &game.rules_json)?)?;
    fields.set_item("start", game.start)?;
    fields.set_item("actions", game.actions.into_pyarray(py))?;
    fields.set_item("movers", game.movers.to_vec().into_pyarray(py))?;
    fields.set_item("rows", game.rows.into_pyarray(py))?;
    fields.set_item("row_lengths", game.row_lengths.into_pyarray(py))?;
    fields.set_item("visit_counts", game.visit_counts.into_pyarray(py))?;
    fields.set_item("visit_entries", game.visit_actions.into_pyarray(py))?;
    fields.set_item("visits", game.visits.into_pyarray(py))?;
    fields.set_item("root_values", game.root_values.into_pyarray(py))?;
    fields.set_item("result", result.trim_start_matches("GAME_RESULT_").to_lowercase())?;
    fields.set_item("score", game.score)?;
    fields.set_item("ending", game.ending)?;
    fields.set_item("model_versions", game.model_versions)?;
    fields.set_item("actor", game.actor)?;
    fields.set_item("build", game.build)?;
    fields.set_item("search", parsed(py, &game.search_json)?)?;
    fields.set_item("finished_at_ms", game.finished_at_ms)?;
    Ok(fields)
}

/// Fields of a listed game.
pub fn of_summary(py: Python<'_>, game: GameSummary) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    let result = game.result().as_str_name();
    fields.set_item("id", hex(&game.id))?;
    fields.set_item("sequence", game.sequence)?;
    fields.set_item("game", game.game)?;
    fields.set_item("positions", game.positions)?;
    fields.set_item("result", result.trim_start_matches("GAME_RESULT_").to_lowercase())?;
    fields.set_item("ending", game.ending)?;
    fields.set_item("model_versions", game.model_versions)?;
    fields.set_item("finished_at_ms", game.finished_at_ms)?;
    fields.set_item("actor", game.actor)?;
    fields.set_item("build", game.build)?;
    fields.set_item("surprise", game.surprise)?;
    Ok(fields)
}

/// Counts of a store.
pub fn of_stats(py: Python<'_>, stats: StatsReply) -> PyResult<Bound<'_, PyDict>> {
    let fields = PyDict::new(py);
    for (name, count) in [
        ("games", stats.games),
        ("window_positions", stats.window_positions),
        ("games_inserted", stats.games_inserted),
        ("positions_inserted", stats.positions_inserted),
        ("positions_sampled", stats.positions_sampled),
        ("held_out_positions", stats.held_out_positions),
        ("oldest_sequence", stats.oldest_sequence),
        ("newest_sequence", stats.newest_sequence),
        ("disk_bytes", stats.disk_bytes),
    ] {
        fields.set_item(name, count)?;
    }
    Ok(fields)
}

/// JSON text as a Python value; its bytes if it is no JSON, and None if it is empty.
fn parsed<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) => python_of(py, &value),
        Err(_) if text.is_empty() => Ok(py.None().into_bound(py)),
        Err(_) => Ok(PyBytes::new(py, text.as_bytes()).into_any()),
    }
}
