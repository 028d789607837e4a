//! Results of an analysis: figures of every action, the best lines.

use games::{Action, FirstValue, Game, MoverValue, Player};
use search::Decision;

/// Lines that are kept.
const LINES: usize = 8;

/// Figures of a search of one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Name of the evaluator.
    pub by: String,
    /// Visits so far.
    pub visits: u32,
    /// Value of the position, for the first player.
    pub value: FirstValue,
    /// Player to act.
    pub mover: Player,
    /// True if the search has ended by itself.
    pub is_complete: bool,
    /// Figures of the legal actions, most visited first.
    pub rows: Vec<Row>,
}

/// Figures of one action.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The action.
    pub action: Action,
    /// Prior of the network.
    pub prior: f32,
    /// Visits of the action.
    pub visits: u32,
    /// Mean value of these visits for the player to act; `None` without visits.
    pub value: Option<MoverValue>,
    /// Most visited line that begins with the action; empty for all but the first rows.
    pub line: Vec<Action>,
}

impl Analysis {
    /// Figures of a decision. `line` gives the most visited line from an action on.
    pub fn of(decision: &Decision, visits: u32, by: &str, line: impl Fn(Action) -> Vec<Action>) -> Self {
        let mut rows: Vec<Row> = decision
            .actions
            .iter()
            .zip(&decision.priors)
            .zip(decision.visits.iter().zip(&decision.values))
            .map(|((&action, &prior), (&visits, &value))| Row {
                action,
                prior,
                visits,
                value: (visits > 0).then_some(value),
                line: Vec::new(),
            })
            .collect();
        rows.sort_by(|one, other| {
            (other.visits, other.prior.to_bits()).cmp(&(one.visits, one.prior.to_bits()))
        });
        for row in rows.iter_mut().take(LINES).filter(|row| row.visits > 0) {
            row.line = line(row.action);
        }
        Self {
            by: by.into(),
            visits,
            value: decision.value.of_first(decision.mover),
            mover: decision.mover,
            is_complete: false,
            rows,
        }
    }
}

/// A value as a share from 0 to 1: the chance to win of a player of two, the value itself in a game for one.
pub fn share<G: Game>(value: f32) -> f32 {
    share_of(G::PLAYERS, value)
}

/// As [`share`], for a game of this number of players.
pub fn share_of(players: u8, value: f32) -> f32 {
    if players == 1 {
        value.clamp(0.0, 1.0)
    } else {
        ((value + 1.0) / 2.0).clamp(0.0, 1.0)
    }
}
