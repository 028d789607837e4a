//! Exact values of Connect Four positions: the ground truth that networks and players are measured against.
//!
//! Alpha-beta with null windows over bitboards, a transposition table of bounded size and moves ordered by the
//! threats they make. The methods are those of Tromp's and Pons' solvers; scores are written as Pons writes them.

mod position;
mod table;

use self::{position::Position, table::Table};
use super::{COLUMNS, ConnectFour};
use crate::game::Game;

/// Columns from the centre outwards: more lines pass through the centre.
const CENTRE_FIRST: [u32; COLUMNS as usize] = [3, 2, 4, 1, 5, 0, 6];

/// Finds exact scores. It keeps what it has learnt between questions, in a table of fixed size.
///
/// A score is positive where the player to move wins: 1 with the last disc that player has, one more for
/// every disc sooner (so it is 22 less the discs the winner needs in all); negative likewise where the
/// opponent wins, 0 for a draw.
///
/// With ten discs on the board an answer takes a tenth of a second on average, with five it may take a minute, and the
/// empty board some minutes.
pub struct Solver {
    table: Table,
    visited: u64,
}

impl Solver {
    /// A solver whose table takes at most `bytes` bytes. 64 MiB serve well; with less it is slower, not wrong.
    pub fn new(bytes: usize) -> Self {
        Self {
            table: Table::new(bytes),
            visited: 0,
        }
    }

    /// The score of a position that is still running; for one that is over, the score its end gives.
    pub fn score(&mut self, state: &ConnectFour) -> i8 {
        let widest = soonest(state.discs() as i32 - 1);
        self.score_within(state, -widest, widest)
    }

    /// Only who wins: 1 the player to move, -1 the opponent, 0 nobody. Usually less work than [`Solver::score`].
    pub fn winner(&mut self, state: &ConnectFour) -> i8 {
        self.score_within(state, -1, 1).signum()
    }

    /// The score of each column for the player to move; `None` for columns that cannot be played.
    pub fn scores(&mut self, state: &ConnectFour) -> [Option<i8>; COLUMNS as usize] {
        self.for_each_column(state, |solver, next| -solver.score(next))
    }

    /// Who wins after each column: 1 the player to move, -1 the opponent, 0 nobody.
    pub fn winners(&mut self, state: &ConnectFour) -> [Option<i8>; COLUMNS as usize] {
        self.for_each_column(state, |solver, next| -solver.winner(next))
    }

    /// Positions visited so far.
    pub const fn visited(&self) -> u64 {
        self.visited
    }

    fn for_each_column(
        &mut self,
        state: &ConnectFour,
        mut ask: impl FnMut(&mut Self, &ConnectFour) -> i8,
    ) -> [Option<i8>; COLUMNS as usize] {
        std::array::from_fn(|column| {
            let mut next = *state;
            next.play(column as u32).ok()?;
            Some(ask(self, &next))
        })
    }

    /// The score if it lies between `low` and `high`, else the nearer of the two.
    fn score_within(&mut self, state: &ConnectFour, mut low: i8, mut high: i8) -> i8 {
        let position = Position::new(state);
        if state.outcome().is_some() {
            let lost = state.outcome() != Some(crate::game::Outcome::Draw);
            let score = if lost { -soonest(position.discs - 1) } else { 0 };
            return score.clamp(low, high);
        }
        if position.wins_at_once() != 0 {
            return soonest(position.discs).clamp(low, high);
        }
        // The window is closed by questions with a yes-or-no answer, near zero first: short wins are easily refuted.
        while low < high {
            let middle = low + (high - low) / 2;
            let asked = match middle {
                ..=0 if low / 2 < middle => low / 2,
                1.. if high / 2 > middle => high / 2,
                _ => middle,
            };
            let found = self.search(&position, asked, asked + 1);
            if found <= asked {
                high = found.max(low);
            } else {
                low = found.min(high);
            }
        }
        low
    }

    /// A bound on the score of a position whose player cannot win at once: the score is at least this if it is
    /// `beta` or more, at most this if it is `alpha` or less.
    fn search(&mut self, position: &Position, mut alpha: i8, mut beta: i8) -> i8 {
        self.visited += 1;
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

/// Makes scores positive: they lie within ±21. 0 marks an empty slot of the table.
const OFFSET: i8 = 22;
/// Added to lower bounds, so that they are told from upper bounds.
const LOWER: i8 = 2 * OFFSET;

/// The score of the player who wins with the disc after `discs`.
const fn soonest(discs: i32) -> i8 {
    ((position::CELLS + 1 - discs) / 2) as i8
}

/// The landings by the threats they make, most first; from the centre outwards where they make equally many.
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
