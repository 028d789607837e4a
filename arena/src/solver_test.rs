//! [`SolverTest`]: a random position whose best moves an exact solver knows. Networks are measured by the share of such positions in
//! which they find an optimal move.
//!
//! Only positions count in which some legal move is worth less than the best one. A move is optimal if it keeps the position's value
//! (win, draw, loss), however long the win takes.

use std::sync::{Arc, atomic::AtomicBool};

use games::{Action, erased::AnyState};
use search::Draws;

/// A position and its optimal moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SolverTest {
    /// Actions that lead to the position.
    pub actions: Vec<Action>,
    /// Number of legal actions.
    pub legal: usize,
    /// The optimal ones.
    pub optimal: Vec<Action>,
}

impl SolverTest {
    /// Plays `moves` random moves from `start` and solves the position. Returns it with the test; `None` if the game ended before, or all
    /// moves are worth the same.
    pub fn draw(start: &dyn AnyState, draws: &mut Draws, moves: usize) -> Option<(Box<dyn AnyState>, Self)> {
        let mut state = start.copy();
        let mut actions = Vec::with_capacity(moves);
        let mut legal = Vec::new();
        for _ in 0..moves {
            state.legal_actions(&mut legal);
            let &action = legal.get(draws.below(legal.len()))?;
            state.play_legal(action);
            actions.push(action);
            if state.outcome().is_some() {
                return None;
            }
        }
        let mut values = Vec::new();
        state.solve_actions(&Arc::new(AtomicBool::new(false)), &mut |action, value| {
            values.push((action, value));
        });
        let test = Self {
            actions,
            legal: values.len(),
            optimal: optimal_actions(&values),
        };
        (test.optimal.len() < test.legal).then_some((state, test))
    }

    /// Share of the legal moves that are optimal.
    pub fn share_of_optimal(&self) -> f64 {
        self.optimal.len() as f64 / self.legal.max(1) as f64
    }
}

/// Actions of the highest value.
pub fn optimal_actions(values: &[(Action, i8)]) -> Vec<Action> {
    let best = values.iter().map(|(_, value)| *value).max();
    let optimal = values.iter().filter(|(_, value)| Some(*value) == best);
    optimal.map(|(action, _)| *action).collect()
}
