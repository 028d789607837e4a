//! Connect Four without a mistake.

use std::{any::Any, fmt, sync::Arc};

use games::{
    Action, Game,
    connect_four::{ConnectFour, solver::Solver},
};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};

use super::{Chooser, PlayerError, Progress};

/// Memory of each solver's table.
const TABLE_BYTES: usize = 64 << 20;

/// Solvers that are not in use. Each keeps what it has learnt; there are as many as are ever needed at once.
#[derive(Clone, Default)]
pub struct Solvers(Arc<Mutex<Vec<Solver>>>);

impl Solvers {
    /// Runs `ask` with a solver that nobody else uses.
    pub fn with<T>(&self, ask: impl FnOnce(&mut Solver) -> T) -> T {
        let idle = self.0.lock().pop();
        let mut solver = idle.unwrap_or_else(|| Solver::new(TABLE_BYTES));
        let answer = ask(&mut solver);
        self.0.lock().push(solver);
        answer
    }
}

impl fmt::Debug for Solvers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Solvers({})", self.0.lock().len())
    }
}

/// Plays any column that gives away nothing: a win stays a win, a draw a draw. Which one of several is drawn.
#[derive(Debug)]
pub struct Perfect {
    solvers: Solvers,
    key: GameKey,
}

impl Perfect {
    /// All draws belong to `key`.
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
