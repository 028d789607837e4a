//! Random positions in which a mistake is possible, and what the solver says of their moves.

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

/// Memory of each thread's solver.
const TABLE_BYTES: usize = 256 << 20;
/// Openings and positions never share a draw.
const SALT: u64 = 0x6163_6375_7261_6379;

/// A part of the game, by the number of discs on the board.
pub struct Phase {
    pub name: &'static str,
    /// The least and the greatest number.
    pub discs: [u32; 2],
}

/// The solver answers for all columns of a position with ten discs in about a second; with fewer it takes minutes, so
/// the first moves of the game are not measured.
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
    /// Who wins after each column: 1 the player to move, 0 nobody, -1 the opponent.
    winners: [Option<i8>; COLUMNS as usize],
}

impl Position {
    /// Whether an action keeps the position's value.
    pub fn is_optimal(&self, action: Action) -> bool {
        let winner = self.winners.get(action as usize).copied().flatten();
        winner.is_some() && winner == self.winners.iter().flatten().max().copied()
    }

    /// The share of its legal moves that are optimal.
    pub fn share_of_optimal(&self) -> f64 {
        let legal = self.winners.iter().flatten().count();
        let optimal = (0..COLUMNS).filter(|&action| self.is_optimal(action)).count();
        optimal as f64 / legal.max(1) as f64
    }
}

/// `count` positions of every phase; threads share the work, and which positions there are depends on the seed alone.
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
            // Numbers were handed out in order and all of them looked at, so the first ones are always the same.
            search.found.into_inner().into_values().take(count).collect()
        })
        .collect()
}

/// What threads share while they look for positions of one phase.
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
            // A mistake is possible.
            if values.any(|value| Some(value) != first) {
                self.found.lock().insert(number, Position { state, winners });
            }
        }
    }
}

/// A position of random play that is not over; `None` where the game ended before.
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
