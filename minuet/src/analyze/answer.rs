//! A search as an answer to a client: [`of`].

use arena::{
    analysis::{
        Figures,
        figures::{Row, texts, tree, turns},
    },
    players::searches::AnySearch,
};
use games::{MoverValue, Outcome, Player, erased::AnyState};
use network::Description;
use proto::v1::{self, AnalyzedMove, MovePrior, PositionAnalysis};

use super::query::{Include, Wanted};

/// Describes a search of `state`.
pub fn of(
    state: &dyn AnyState,
    search: &dyn AnySearch,
    fresh: u64,
    network: Option<&Description>,
    wanted: &Wanted,
) -> PositionAnalysis {
    let figures = Figures::of(search, wanted.lines);
    let (mover, rows) = (figures.mover, &figures.rows);
    let rows_if = |part| rows.iter().filter(move |_| wanted.include.contains(&part));
    PositionAnalysis {
        position: state.position(),
        to_move: ["first", "second"][mover.index()].into(),
        network: network.map(|network| network.version.clone()),
        visits: figures.visits,
        fresh,
        value: figures.value.get(),
        evaluation: figures.evaluation.get(),
        proofs: figures.certain.min(1.0),
        proven: figures.proven.map(|outcome| result(outcome, mover)),
        legal: rows.len() as u32,
        moves: rows
            .iter()
            .take(wanted.lines)
            .map(|row| one_move(state, row, mover))
            .collect(),
        priors: rows_if(Include::Priors)
            .map(|row| MovePrior {
                action: action(state, row),
                prior: row.prior,
            })
            .collect(),
        values: rows_if(Include::Values)
            .map(|row| v1::MoveValue {
                action: action(state, row),
                visits: row.visits,
                value: row.value.map(MoverValue::get),
            })
            .collect(),
        tree: match wanted.include.contains(&Include::Tree) {
            true => tree(search),
            false => Vec::new(),
        },
    }
}

fn one_move(state: &dyn AnyState, row: &Row, mover: Player) -> AnalyzedMove {
    AnalyzedMove {
        text: state.write_turn(&[row.action]),
        action: action(state, row),
        visits: row.visits,
        value: row.value.map(MoverValue::get),
        prior: row.prior,
        proven: row.proven.map(|outcome| result(outcome, mover)),
        line: texts(state, &turns(state, &row.line)),
    }
}

fn action(state: &dyn AnyState, row: &Row) -> String {
    state.action_to_json(row.action).to_string()
}

/// Names an outcome for a player.
fn result(outcome: Outcome, player: Player) -> String {
    let value = outcome.value().seen_by(player).get();
    let name = match value {
        _ if value > 0.0 => "win",
        _ if value < 0.0 => "loss",
        _ => "draw",
    };
    name.into()
}
