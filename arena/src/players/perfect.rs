//! A perfect player of Connect Four.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context as _;
use games::{
    Action,
    connect_four::{COLUMNS, ConnectFour, solver::Solver},
};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};

use super::{
    chooser::{Chooser, GameSoFar},
    typed,
};

/// Memory of each solver's table in bytes.
const TABLE_BYTES: usize = 64 << 20;

/// Number of discs below which the values of a position are kept for all games. Many games have it, and solving it takes from half a second
/// to many minutes.
const EARLY_DISCS: u32 = 12;

/// Number of discs from which the player loses as late as it can. With fewer, scores take minutes for each position.
const PUT_OFF_DISCS: u32 = 8;

/// A number for each column, greater for better ones. `None` for columns that cannot be played.
type Values = [Option<i8>; COLUMNS as usize];

/// Solvers that the games of a player share.
#[derive(Clone, Default)]
pub struct Solvers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Idle solvers. Each keeps its table of solved positions. There are as many as were ever needed at once.
    idle: Mutex<Vec<Solver>>,
    /// Values of the columns in positions with fewer than [`EARLY_DISCS`] discs.
    early: Mutex<HashMap<ConnectFour, Values>>,
}

impl Solvers {
    /// Returns the values of the columns: 1 if the player to act wins, -1 if the opponent does, 0 for a draw, or scores if every
    /// column loses. `None` if `stop` was set before they were found.
    fn values(&self, state: &ConnectFour, stop: &Arc<AtomicBool>) -> Option<Values> {
        if let Some(values) = self.0.early.lock().get(state) {
            return Some(*values);
        }
        let idle = self.0.idle.lock().pop();
        let mut solver = idle.unwrap_or_else(|| Solver::new(TABLE_BYTES));
        let values = solver.unless(stop, |solver| {
            let winners = solver.winners(state);
            let is_lost = winners.iter().flatten().all(|&winner| winner < 0);
            match state.discs() >= PUT_OFF_DISCS && is_lost {
                true => solver.scores(state),
                false => winners,
            }
        });
        self.0.idle.lock().push(solver);
        if let Some(values) = values.filter(|_| state.discs() < EARLY_DISCS) {
            self.0.early.lock().insert(*state, values);
        }
        values
    }
}

impl fmt::Debug for Solvers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Solvers({})", self.0.idle.lock().len())
    }
}

/// Plays a column that keeps the value of the position (a win stays a win, a draw a draw), drawn at random from all such columns. From
/// eight discs on it loses as late as it can.
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

impl Chooser for Perfect {
    fn choose(&mut self, game: GameSoFar<'_>) -> anyhow::Result<Action> {
        let never = Arc::default();
        let state: &ConnectFour = typed(game.state)?;
        let values = self.solvers.values(state, game.stop.unwrap_or(&never));
        let values = values.unwrap_or_default();
        let best = values.iter().flatten().max();
        let optimal: Vec<Action> = (0..)
            .zip(&values)
            .filter(|(_, value)| value.is_some() && value.as_ref() == best)
            .map(|(column, _)| column)
            .collect();
        let mut draws = Draws::new(self.key, game.actions.len() as u32, Purpose::Choice);
        let drawn = optimal.get(draws.below(optimal.len())).copied();
        drawn.context("perfect chose no action")
    }
}
