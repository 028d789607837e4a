//! A perfect player of Connect Four.

use std::{any::Any, fmt, sync::Arc};

use games::{
    Action, Game,
    connect_four::{ConnectFour, solver::Solver},
};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};

use super::{
    error::PlayerError,
    seat::{Chooser, Progress},
};

/// Memory of each solver's table in bytes.
const TABLE_BYTES: usize = 64 << 20;

/// Idle solvers. Each keeps its table of solved positions. There are as many as were ever needed at once.
#[derive(Clone, Default)]
pub struct Solvers(Arc<Mutex<Vec<Solver>>>);

impl Solvers {
    /// Runs `solve` with an idle solver, or with a new one.
    pub fn with<T>(&self, solve: impl FnOnce(&mut Solver) -> T) -> T {
        let idle = self.0.lock().pop();
        let mut solver = idle.unwrap_or_else(|| Solver::new(TABLE_BYTES));
        let solved = solve(&mut solver);
        self.0.lock().push(solver);
        solved
    }
}

impl fmt::Debug for Solvers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Solvers({})", self.0.lock().len())
    }
}

/// Plays a column that keeps the value of the position (a win stays a win, a draw a draw), drawn at random from all such columns.
#[derive(Debug)]
pub struct Perfect {
    solvers: Solvers,
    key: GameKey,
}

impl Perfect {
    /// Returns a perfect player. `key` determines all random draws.
    pub fn new(solvers: Solvers, key: GameKey) -> Self {
        Self { solvers, key }
    }
}

impl<G: Game> Chooser<G> for Perfect {
    fn choose(&mut self, game: Progress<'_, G>) -> Result<Action, PlayerError> {
        let state: &dyn Any = game.state;
        let Some(state) = state.downcast_ref::<ConnectFour>() else {
            return Err(PlayerError::Game {
                player: "a perfect player",
                plays: ConnectFour::NAME,
                game: G::NAME,
            });
        };
        let winners = self.solvers.with(|solver| solver.winners(state));
        let best = winners.iter().flatten().max();
        let optimal: Vec<Action> = (0..)
            .zip(&winners)
            .filter(|(_, winner)| winner.is_some() && winner.as_ref() == best)
            .map(|(column, _)| column)
            .collect();
        let mut draws = Draws::new(self.key, game.actions.len() as u32, Purpose::Choice);
        optimal
            .get(draws.below(optimal.len()))
            .copied()
            .ok_or_else(|| PlayerError::NoChoice("perfect".into()))
    }
}
