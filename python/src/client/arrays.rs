//! Messages of the replay store as dictionaries of arrays. Arrays take over the memory of the message.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods as _};
use proto::{
    columns::ColumnError,
    decisions::Halves,
    ids::hex,
    v1::{Batch, DecisionKind, Decisions, Game, GameResult, GameSummary, StatsReply},
};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{error::ServerError, rules::python_of};

/// Fields of one batch of the store at `address`.
pub fn of_batch<'py>(py: Python<'py>, address: &str, mut batch: Batch) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let columns = batch.decision_columns().map(drop);
    fields.set_item(
        "decisions",
        of_decisions(py, address, batch.decisions.take(), columns)?,
    )?;
    fields.set_item("undecided", batch.undecided.into_pyarray(py))?;
    let owned = batch.territory_positions.len();
    fields.set_item("territories", owners(py, &batch.territories, owned)?)?;
    fields.set_item("territory_scores", batch.territory_scores.into_pyarray(py))?;
    fields.set_item("territory_positions", batch.territory_positions.into_pyarray(py))?;
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
    Ok(fields)
}

/// Fields of one game of the store at `address`.
pub fn of_game<'py>(py: Python<'py>, address: &str, mut game: Game) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let result = result_of(address, game.result)?;
    let columns = game.decision_columns().map(drop);
    fields.set_item(
        "decisions",
        of_decisions(py, address, game.decisions.take(), columns)?,
    )?;
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
    fields.set_item("policy_surprises", game.policy_surprises.into_pyarray(py))?;
    fields.set_item("result", result)?;
    fields.set_item("score", game.score)?;
    fields.set_item("territory", signed(py, &game.territory))?;
    fields.set_item("territory_score", game.territory_score)?;
    fields.set_item("discount", if game.discount == 0.0 { 1.0 } else { game.discount })?;
    fields.set_item("ending", game.ending)?;
    fields.set_item("provenance", game.provenance)?;
    fields.set_item("model_versions", game.model_versions)?;
    fields.set_item("model_of_position", game.model_of_position.into_pyarray(py))?;
    fields.set_item("run_seed", game.run_seed)?;
    fields.set_item("game_number", game.game_number)?;
    fields.set_item("actor", game.actor)?;
    fields.set_item("build", game.build)?;
    fields.set_item("search", parsed(py, &game.search_json)?)?;
    fields.set_item("finished_at_ms", game.finished_at_ms)?;
    Ok(fields)
}

/// Fields of a listed game of the store at `address`.
pub fn of_summary<'py>(py: Python<'py>, address: &str, game: GameSummary) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    let result = result_of(address, game.result)?;
    fields.set_item("id", hex(&game.id))?;
    fields.set_item("sequence", game.sequence)?;
    fields.set_item("game", game.game)?;
    fields.set_item("positions", game.positions)?;
    fields.set_item("result", result)?;
    fields.set_item("ending", game.ending)?;
    fields.set_item("model_versions", game.model_versions)?;
    fields.set_item("finished_at_ms", game.finished_at_ms)?;
    fields.set_item("actor", game.actor)?;
    fields.set_item("build", game.build)?;
    fields.set_item("surprise", game.surprise)?;
    Ok(fields)
}

/// Results of searches, `None` without any. Raises `ServerError` if the columns do not fit together, or a kind is unknown.
fn of_decisions<'py>(
    py: Python<'py>,
    address: &str,
    decisions: Option<Decisions>,
    columns: Result<(), ColumnError>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(decisions) = decisions else {
        return Ok(None);
    };
    columns.map_err(|error| ServerError::new_err(format!("server {address}: {error}")))?;
    let unknown = |&&kind: &&u8| DecisionKind::try_from(i32::from(kind)).is_err();
    if let Some(kind) = decisions.kinds.iter().find(unknown) {
        return Err(newer(address, &format!("search results of kind {kind}")));
    }
    let numbers = |bytes: &[u8]| Halves::new(bytes).iter().collect::<Vec<f32>>().into_pyarray(py);
    let fields = PyDict::new(py);
    fields.set_item("kinds", decisions.kinds.to_vec().into_pyarray(py))?;
    fields.set_item("visited_priors", numbers(&decisions.visited_priors))?;
    fields.set_item("values", numbers(&decisions.values))?;
    fields.set_item("unvisited_counts", decisions.unvisited_counts.into_pyarray(py))?;
    fields.set_item("unvisited_entries", decisions.unvisited_actions.into_pyarray(py))?;
    fields.set_item("unvisited_priors", numbers(&decisions.unvisited_priors))?;
    fields.set_item("evaluations", numbers(&decisions.evaluations))?;
    fields.set_item("played", decisions.played.into_pyarray(py))?;
    Ok(Some(fields))
}

/// Owners of the squares, from bytes with a sign.
fn signed<'py>(py: Python<'py>, owners: &[u8]) -> Bound<'py, PyArray1<i8>> {
    let owners: Vec<i8> = owners.iter().map(|owner| owner.cast_signed()).collect();
    owners.into_pyarray(py)
}

/// Owners of the squares of so many boards, one row for each. Raises an exception if the boards differ in size.
fn owners<'py>(py: Python<'py>, owners: &[u8], boards: usize) -> PyResult<Bound<'py, PyArray2<i8>>> {
    signed(py, owners).reshape([boards, owners.len() / boards.max(1)])
}

/// Name of a game's result: first_won, second_won, draw or scored.
fn result_of(address: &str, result: i32) -> PyResult<String> {
    match GameResult::try_from(result) {
        Ok(GameResult::Unspecified) | Err(_) => Err(newer(address, &format!("results of kind {result}"))),
        Ok(known) => {
            let name = known.as_str_name();
            Ok(name.strip_prefix("GAME_RESULT_").unwrap_or(name).to_lowercase())
        }
    }
}

/// Exception for an answer that only a newer version can read.
fn newer(address: &str, what: &str) -> PyErr {
    ServerError::new_err(format!(
        "server {address}: its games have {what}, which this version of minuet does not know; update minuet"
    ))
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

/// JSON text as a Python value; its bytes if it is not JSON, and None if it is empty.
fn parsed<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value) => python_of(py, &value),
        Err(_) if text.is_empty() => Ok(py.None().into_bound(py)),
        Err(_) => Ok(PyBytes::new(py, text.as_bytes()).into_any()),
    }
}
