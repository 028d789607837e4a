//! Random positions of each phase of the game, with their optimal moves.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use arena::solver_test::SolverTest;
use games::erased::{AnyGame, AnyState};
use parking_lot::Mutex;
use search::{Draws, GameKey, Purpose};

/// Added to the seed, so that positions and openings of equal seed have different random numbers.
const SALT: u64 = 0x6163_6375_7261_6379;

/// A part of the game, by the number of discs on the board.
pub struct Phase {
    pub name: &'static str,
    /// Smallest and largest number of discs.
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

/// A position and its optimal moves.
pub type Position = (Box<dyn AnyState>, SolverTest);

/// Draws `count` positions of every phase in parallel. The positions depend on the seed alone.
///
/// # Errors
/// The game has no start under its rules.
pub fn draw(game: &AnyGame, seed: u64, count: usize) -> anyhow::Result<Vec<Vec<Position>>> {
    let start = game.variant(&game.rules(), None)?.start(None)?;
    let drawn = (0..PHASES.len())
        .map(|phase| {
            let search = Search {
                start: &*start,
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
        .collect();
    Ok(drawn)
}

/// State shared by the threads that search positions of one phase.
struct Search<'a> {
    start: &'a dyn AnyState,
    seed: u64,
    phase: usize,
    count: usize,
    next: AtomicU64,
    found: Mutex<BTreeMap<u64, Position>>,
}

impl Search<'_> {
    fn work(&self) {
        while self.found.lock().len() < self.count {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let key = GameKey {
                run_seed: self.seed ^ SALT,
                game: number,
            };
            let mut draws = Draws::new(key, self.phase as u32, Purpose::Choice);
            let [least, most] = PHASES[self.phase].discs.map(|discs| discs as usize);
            let moves = least + draws.below(most - least + 1);
            if let Some(position) = SolverTest::draw(self.start, &mut draws, moves) {
                self.found.lock().insert(number, position);
            }
        }
    }
}
