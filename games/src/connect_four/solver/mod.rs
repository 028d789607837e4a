//! Exact values of Connect Four positions, by which networks and players are measured.
//!
//! The solver is an alpha-beta search with null windows over bitboards. It has a transposition table of bounded size, and
//! orders moves by the threats they make. Methods and scores are those of Tromp's and Pons' solvers.

mod position;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use self::position::Position;
use super::{COLUMNS, ConnectFour};
use crate::game::{Game, KnownOutcome, Outcome};

/// Columns from the centre outwards, because more lines pass through the centre.
const CENTRE_FIRST: [u32; COLUMNS as usize] = [3, 2, 4, 1, 5, 0, 6];

/// Returns the outcome of a position in which the game is not over, if the next disc wins, or if the opponent wins with the
/// disc after it whatever the next one is.
pub(super) fn at_once(state: &ConnectFour) -> Option<KnownOutcome> {
    let position = Position::new(state);
    let mover = state.to_move();
    let (winner, actions) = if position.wins_at_once() != 0 {
        (mover, 1)
    } else if position.safe_landings() == 0 {
        (mover.other(), 2)
    } else {
        return None;
    };
    Some(KnownOutcome {
        outcome: Outcome::Won(winner),
        actions,
    })
}

/// Computes exact scores. A table of fixed size keeps results between calls.
///
/// A score is positive if the player to act wins: 22 minus the number of discs that the winner places in the whole game, so 1
/// for a win with the very last disc. It is negative, computed in the same way, if the opponent wins, and 0 for a draw.
///
/// A position with ten discs takes a tenth of a second on average, one with five discs up to a minute, and the empty board
/// some minutes.
///
/// ```
/// use games::connect_four::{ConnectFour, solver::Solver};
/// use games::Game;
///
/// let mut state = ConnectFour::EMPTY;
/// for column in [3, 0, 3, 0, 3, 0] {
///     state.play(column)?;
/// }
/// // The first player wins at once, with its fourth disc.
/// assert_eq!(Solver::new(1 << 16).score(&state), 22 - 4);
/// # Ok::<(), games::IllegalAction>(())
/// ```
pub struct Solver {
    table: Table,
    visited: u64,
    /// Flag that stops a search, and true once a search has seen it.
    stop: Option<Arc<AtomicBool>>,
    is_stopped: bool,
}

impl Solver {
    /// Makes a solver whose table takes at most `bytes` bytes. 64 MiB are enough for any position; a smaller table makes the
    /// solver slower.
    pub fn new(bytes: usize) -> Self {
        Self {
            table: Table::new(bytes),
            visited: 0,
            stop: None,
            is_stopped: false,
        }
    }

    /// Returns the score of a position, for the player to act. The game may be over.
    pub fn score(&mut self, state: &ConnectFour) -> i8 {
        let widest = soonest(state.discs() as i32 - 1);
        self.score_within(state, -widest, widest)
    }

    /// Returns the sign of the score: 1 if the player to act wins, -1 if the opponent does, 0 for a draw. Usually faster than
    /// [`Solver::score`].
    pub fn winner(&mut self, state: &ConnectFour) -> i8 {
        self.score_within(state, -1, 1).signum()
    }

    /// Returns what `solve` finds. `None` if `stop` was set before that; what was found on the way stays in the table.
    pub fn unless<T>(&mut self, stop: &Arc<AtomicBool>, solve: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.stop = Some(Arc::clone(stop));
        let found = solve(self);
        self.stop = None;
        (!std::mem::take(&mut self.is_stopped)).then_some(found)
    }

    /// Returns the score of each column, for the player to act. `None` for columns that cannot be played.
    pub fn scores(&mut self, state: &ConnectFour) -> [Option<i8>; COLUMNS as usize] {
        self.for_each_column(state, |solver, next| -solver.score(next))
    }

    /// Returns the sign of the score of each column, for the player to act. `None` for columns that cannot be played.
    pub fn winners(&mut self, state: &ConnectFour) -> [Option<i8>; COLUMNS as usize] {
        self.for_each_column(state, |solver, next| -solver.winner(next))
    }

    /// Returns the number of positions visited so far.
    pub const fn visited(&self) -> u64 {
        self.visited
    }

    fn for_each_column(
        &mut self,
        state: &ConnectFour,
        mut evaluate: impl FnMut(&mut Self, &ConnectFour) -> i8,
    ) -> [Option<i8>; COLUMNS as usize] {
        std::array::from_fn(|column| {
            let mut next = *state;
            next.play(column as u32).ok()?;
            Some(evaluate(self, &next))
        })
    }

    /// Returns the score, limited to the range from `low` to `high`.
    fn score_within(&mut self, state: &ConnectFour, mut low: i8, mut high: i8) -> i8 {
        let position = Position::new(state);
        if state.outcome().is_some() {
            let lost = state.outcome() != Some(Outcome::Draw);
            let score = if lost { -soonest(position.discs - 1) } else { 0 };
            return score.clamp(low, high);
        }
        if position.wins_at_once() != 0 {
            return soonest(position.discs).clamp(low, high);
        }
        // Null-window searches narrow the range, near zero first, because short wins are refuted quickly.
        while low < high && !self.is_stopped {
            let middle = low + (high - low) / 2;
            let bound = match middle {
                ..=0 if low / 2 < middle => low / 2,
                1.. if high / 2 > middle => high / 2,
                _ => middle,
            };
            let found = self.search(&position, bound, bound + 1);
            if found <= bound {
                high = found.max(low);
            } else {
                low = found.min(high);
            }
        }
        low
    }

    /// Returns a bound on the score of a position whose player cannot win at once: a lower bound if it is at least `beta`, an
    /// upper bound if it is at most `alpha`.
    fn search(&mut self, position: &Position, mut alpha: i8, mut beta: i8) -> i8 {
        self.visited += 1;
        if self.visited.is_multiple_of(STOP_EVERY) {
            self.is_stopped |= self
                .stop
                .as_ref()
                .is_some_and(|stop| stop.load(Ordering::Relaxed));
        }
        let safe = position.safe_landings();
        if safe == 0 {
            return -soonest(position.discs + 1);
        }
        if position.discs >= position::CELLS - 2 {
            return 0;
        }
        // Neither side wins with its next disc.
        let lowest = -soonest(position.discs + 3);
        if alpha < lowest {
            alpha = lowest;
            if alpha >= beta {
                return alpha;
            }
        }
        let key = position.key();
        let mut highest = soonest(position.discs + 2);
        match self.table.get(key) {
            Some(bound) if bound > LOWER => {
                let lower = bound - LOWER - OFFSET;
                if alpha < lower {
                    alpha = lower;
                    if alpha >= beta {
                        return alpha;
                    }
                }
            }
            Some(bound) => highest = highest.min(bound - OFFSET),
            None => {}
        }
        if beta > highest {
            beta = highest;
            if alpha >= beta {
                return beta;
            }
        }
        for landing in ordered(position, safe) {
            let score = -self.search(&position.after(landing), -beta, -alpha);
            if self.is_stopped {
                // Nothing incomplete enters the table.
                return alpha;
            }
            if score >= beta {
                self.table.put(key, score + OFFSET + LOWER);
                return score;
            }
            alpha = alpha.max(score);
        }
        self.table.put(key, alpha + OFFSET);
        alpha
    }
}

/// Number of positions between two looks at the flag that stops a search.
const STOP_EVERY: u64 = 4096;

/// Offset that makes scores positive, which lie within ±21. The value 0 marks an empty slot of the table.
const OFFSET: i8 = 22;
/// Offset of lower bounds, which distinguishes them from upper bounds.
const LOWER: i8 = 2 * OFFSET;

/// Returns the score of a player who wins with the next disc, when `discs` are on the board.
const fn soonest(discs: i32) -> i8 {
    ((position::CELLS + 1 - discs) / 2) as i8
}

/// Returns the landings in the order of the threats they make, most first. Those with equally many are ordered from the
/// centre.
fn ordered(position: &Position, safe: u64) -> impl Iterator<Item = u64> {
    let mut moves = [(0, 0); COLUMNS as usize];
    let mut count = 0;
    for column in CENTRE_FIRST {
        let landing = position::in_column(safe, column);
        if landing == 0 {
            continue;
        }
        let threats = position.threats_after(landing);
        let mut place = count;
        while place > 0 && moves[place - 1].0 < threats {
            moves[place] = moves[place - 1];
            place -= 1;
        }
        moves[place] = (threats, landing);
        count += 1;
    }
    moves.into_iter().take(count).map(|(_, landing)| landing)
}

/// Transposition table: bounds on the scores of positions, by key. A new entry replaces the old one of its slot.
struct Table {
    /// Slots, each with a key in the upper 56 bits and a value in the lowest byte.
    slots: Box<[u64]>,
}

impl Table {
    /// Makes a table of at most `bytes` bytes, but at least one slot.
    fn new(bytes: usize) -> Self {
        // The number of slots is odd, so that the slot depends on every bit of a key.
        let slots = ((bytes / size_of::<u64>()).max(2) - 1) | 1;
        Self {
            slots: vec![0; slots].into_boxed_slice(),
        }
    }

    /// Returns the last value of a key. `None` if there is none, or another key took its slot.
    fn get(&self, key: u64) -> Option<i8> {
        let slot = self.slots[self.place(key)];
        (slot >> 8 == key && slot as u8 != 0).then_some(slot as u8 as i8)
    }

    /// Stores `value`, which must not be 0, for a key.
    fn put(&mut self, key: u64, value: i8) {
        let place = self.place(key);
        self.slots[place] = key << 8 | u64::from(value as u8);
    }

    fn place(&self, key: u64) -> usize {
        (key % self.slots.len() as u64) as usize
    }
}
