//! Random positions in which some legal move is not optimal, and the solver's values of their moves.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use games::{
    Action, Game,
    connect_four::{COLUMNS, ConnectFour, solver::Solver},
};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};

/// Memory of the solver's table in each thread, in bytes.
const TABLE_BYTES: usize = 256 << 20;
/// Added to the seed, so that positions and openings of equal seed have different random numbers.
const SALT: u64 = 0x6163_6375_7261_6379;

/// A part of the game, by the number of discs on the board.
pub struct Phase {
    pub name: &'static str,
    /// Smallest and greatest number of discs.
    pub discs: [u32; 2],
}

/// Measured phases. The solver needs about a second for all columns of a position with ten discs and minutes with fewer, so the
/// first moves of the game are not measured.
pub const PHASES: [Phase; 4] = [
    Phase {
        name: "early",
        discs: [10, 15],
    },
    Phase {
        name: "middle",
        discs: [16, 21],
    },
    Phase {
        name: "late",
        discs: [22, 27],
    },
    Phase {
        name: "end",
        discs: [28, 37],
    },
];

/// A position and the value of each of its moves.
pub struct Position {
    pub state: ConnectFour,
    /// Value of each column for the player to move: 1 win, 0 draw, -1 loss; `None` if the column is full.
    winners: [Option<i8>; COLUMNS as usize],
}

impl Position {
    /// True if an action keeps the position's value.
    pub fn is_optimal(&self, action: Action) -> bool {
        let winner = self.winners.get(action as usize).copied().flatten();
        winner.is_some() && winner == self.winners.iter().flatten().max().copied()
    }

    /// Returns the share of the legal moves that are optimal.
    pub fn share_of_optimal(&self) -> f64 {
        let legal = self.winners.iter().flatten().count();
        let optimal = (0..COLUMNS).filter(|&action| self.is_optimal(action)).count();
        optimal as f64 / legal.max(1) as f64
    }
}

/// Draws `count` positions of every phase in parallel. The positions depend on the seed alone.
pub fn draw(seed: u64, count: usize) -> Vec<Vec<Position>> {
    (0..PHASES.len())
        .map(|phase| {
            let search = Search {
                seed,
                phase,
                count,
                next: AtomicU64::new(0),
                found: Mutex::new(BTreeMap::new()),
            };
            thread::scope(|scope| {
                for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                    scope.spawn(|| search.work());
                }
            });
            // Every number below the last one was examined, so the first positions do not depend on the threads.
            search.found.into_inner().into_values().take(count).collect()
        })
        .collect()
}

/// State shared by the threads that search positions of one phase.
struct Search {
    seed: u64,
    phase: usize,
    count: usize,
    next: AtomicU64,
    found: Mutex<BTreeMap<u64, Position>>,
}

impl Search {
    fn work(&self) {
        let mut solver = Solver::new(TABLE_BYTES);
        while self.found.lock().len() < self.count {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(state) = random_state(self.seed, self.phase, number) else {
                continue;
            };
            let winners = solver.winners(&state);
            let mut values = winners.iter().flatten();
            let first = values.next();
            // Some move is not optimal.
            if values.any(|value| Some(value) != first) {
                self.found.lock().insert(number, Position { state, winners });
            }
        }
    }
}

/// Returns a position of random play; `None` if the game ended before reaching the phase.
fn random_state(seed: u64, phase: usize, number: u64) -> Option<ConnectFour> {
    let key = GameKey {
        run_seed: seed ^ SALT,
        game: number,
    };
    let mut draws = Draws::new(key, phase as u32, Purpose::Choice);
    let [least, greatest] = PHASES[phase].discs;
    let discs = least + draws.below((greatest - least + 1) as usize) as u32;
    let mut state = ConnectFour::EMPTY;
    let mut legal = Vec::new();
    while state.discs() < discs {
        state.legal_actions(&mut legal);
        let action = *legal.get(draws.below(legal.len()))?;
        state.play_legal(action);
    }
    state.outcome().is_none().then_some(state)
}
