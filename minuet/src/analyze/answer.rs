//! A search as JSON: [`Answer`].

use arena::{
    analysis::{
        Figures,
        figures::{Row, texts, tree, turns},
    },
    players::searches::AnySearch,
};
use games::{MoverValue, Outcome, Player, erased::AnyState};
use network::Description;
use serde::Serialize;
use serde_json::{Value, json};

use super::query::{Include, Wanted};

/// The answer to a query about one position.
#[derive(Debug, Serialize)]
pub struct Answer {
    /// Position as the game writes it.
    pub position: String,
    /// Player to move: `first` or `second`.
    pub to_move: &'static str,
    /// Version of the network; null without one.
    pub network: Option<String>,
    /// Visits of the search.
    pub visits: u32,
    /// Positions that the network evaluated for this query.
    pub fresh: u64,
    /// Value of the position, for the player to move, in [-1, 1]; in games of one player in [0, 1].
    pub value: f32,
    /// Value of the position by the network alone.
    pub evaluation: f32,
    /// Share of the visits that ended in a known or proven outcome, in [0, 1].
    pub proofs: f32,
    /// Outcome for the player to move, if it is proven: `win`, `draw` or `loss`.
    pub proven: Option<&'static str>,
    /// Number of legal moves.
    pub legal: usize,
    /// Moves, the most visited first.
    pub moves: Vec<Move>,
    /// Prior of every legal move: pairs of action and prior.
    #[serde(skip_serializing_if = "Option::is_none")]
    priors: Option<Vec<Value>>,
    /// Every visited move: action, visits and value.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Value>>,
    /// Every node with visits.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Vec<Value>>,
}

/// One move of an answer.
#[derive(Debug, Serialize)]
pub struct Move {
    /// The move in the game's notation.
    pub text: String,
    /// The move in the notation of `minuet rules`.
    pub action: Value,
    /// Visits of the move.
    pub visits: u32,
    /// Mean value of these visits, for the player to move; null without visits.
    pub value: Option<f32>,
    /// Prior of the network.
    pub prior: f32,
    /// Outcome after the move for the player to move, if it is proven.
    pub proven: Option<&'static str>,
    /// Most visited line that begins with the move, by turns in the game's notation. The last turn may be incomplete.
    pub line: Vec<String>,
}

impl Answer {
    /// Describes a search of `state`.
    pub fn of(
        state: &dyn AnyState,
        search: &dyn AnySearch,
        fresh: u64,
        network: Option<&Description>,
        wanted: &Wanted,
    ) -> Self {
        let figures = Figures::of(search, wanted.lines);
        let mover = figures.mover;
        let has = |part| wanted.include.contains(&part);
        let rows = |row: fn(&dyn AnyState, &Row) -> Value| {
            let rows = figures.rows.iter();
            rows.map(|one| row(state, one)).collect()
        };
        let rows_if = |part, row: fn(&dyn AnyState, &Row) -> Value| has(part).then(|| rows(row));
        Self {
            position: state.position(),
            to_move: ["first", "second"][mover.index()],
            network: network.map(|network| network.version.clone()),
            visits: figures.visits,
            fresh,
            value: figures.value.get(),
            evaluation: figures.evaluation.get(),
            proofs: figures.certain.min(1.0),
            proven: figures.proven.map(|outcome| result(outcome, mover)),
            legal: figures.rows.len(),
            priors: rows_if(Include::Priors, |state, row| {
                json!([state.action_to_json(row.action), row.prior])
            }),
            values: rows_if(Include::Values, |state, row| {
                let value = row.value.map(MoverValue::get);
                json!([state.action_to_json(row.action), row.visits, value])
            }),
            tree: has(Include::Tree).then(|| tree(search)),
            moves: figures
                .rows
                .iter()
                .take(wanted.lines)
                .map(|row| one_move(state, row, mover))
                .collect(),
        }
    }
}

fn one_move(state: &dyn AnyState, row: &Row, mover: Player) -> Move {
    Move {
        text: state.write_turn(&[row.action]),
        action: state.action_to_json(row.action),
        visits: row.visits,
        value: row.value.map(MoverValue::get),
        prior: row.prior,
        proven: row.proven.map(|outcome| result(outcome, mover)),
        line: texts(state, &turns(state, &row.line)),
    }
}

/// Names an outcome for a player.
fn result(outcome: Outcome, player: Player) -> &'static str {
    let value = outcome.value().seen_by(player).get();
    match value {
        _ if value > 0.0 => "win",
        _ if value < 0.0 => "loss",
        _ => "draw",
    }
}
