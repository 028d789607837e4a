//! Row of a position: its packed clan and grids, about 300 bytes.
//!
//! `[imps, flags, imps × u32, 16 × u32 first grid, 16 × u32 second grid]`. Bit 0 of the flags: the step is marked (of a pair, or without a
//! problem); bit 1: there is a second grid; bit 2: the problem is a pair. All cells of a missing grid are absent. The present render is not
//! part of the row, because it follows from the clan.

use super::{
    clan::Clan,
    grammar::MAX_IMPS,
    grid::{Grid, GridError, PACKED},
    packed::ClanError,
    problem::Problem,
};
use crate::codec::RowError;

/// Number of values before the imps.
const HEAD: usize = 2;
/// Number of values after the imps.
const GRIDS: usize = 2 * PACKED;
const STEP_MARKED: u32 = 1;
const SECOND_GRID: u32 = 2;
const PAIR: u32 = 4;

/// Content of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Present clan.
    pub clan: Clan,
    /// Problem of the episode.
    pub problem: Problem,
    /// True if the first grid of a pair was marked as a step.
    pub step_marked: bool,
}

/// Error: a row is not a position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    /// The clan is not valid.
    #[error(transparent)]
    Clan(#[from] ClanError),
    /// A grid is not valid.
    #[error("the {which} grid: {error}")]
    Grid {
        /// `first` or `second`.
        which: &'static str,
        /// Reason.
        error: GridError,
    },
    /// The flags contradict the grids or each other.
    #[error("flags {flags}: {reason}")]
    Flags {
        /// Flags of the row.
        flags: u32,
        /// Reason.
        reason: &'static str,
    },
}

impl From<PositionError> for RowError {
    fn from(error: PositionError) -> Self {
        Self::Position(error.to_string())
    }
}

/// Least and greatest number of values of a row.
pub(crate) const LENGTHS: (usize, usize) = (HEAD + 4 + GRIDS, HEAD + MAX_IMPS + GRIDS);

/// Returns the number of values of the row of a clan of `imps` imps.
pub const fn length(imps: u32) -> usize {
    let imps = imps as usize;
    HEAD + if imps < MAX_IMPS { imps } else { MAX_IMPS } + GRIDS
}

/// True if the problem of a valid row is a pair.
pub(super) fn is_pair(row: &[u32]) -> bool {
    row.get(1).is_some_and(|flags| flags & PAIR != 0)
}

/// Splits rows that stand back to back. If the last row is incomplete, its part is returned as it is.
pub fn split(rows: &[u32]) -> impl Iterator<Item = &[u32]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let &imps = rest.first()?;
        let (row, others) = rest.split_at(length(imps).min(rest.len()));
        rest = others;
        Some(row)
    })
}

/// Returns the imps and grids of a row. Both are empty if the row is too short.
pub(super) fn parts_mut(row: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let imps = row.first().map_or(0, |&imps| length(imps) - HEAD - GRIDS);
    row.get_mut(HEAD..)
        .and_then(|rest| rest.split_at_mut_checked(imps))
        .unwrap_or_default()
}

impl Position {
    /// Appends the row of the position to `row`.
    pub fn write(&self, row: &mut Vec<u32>) {
        write(&self.clan, &self.problem, self.step_marked, row);
    }

    /// Reads a row. Any list of numbers is safe to read.
    ///
    /// # Errors
    /// [`RowError`] if the row is not valid.
    pub fn read(row: &[u32]) -> Result<Self, RowError> {
        let &[imps, flags, ref rest @ ..] = row else {
            return Err(RowError::Length {
                expected: LENGTHS.0,
                found: row.len(),
            });
        };
        let expected = HEAD + (imps as usize).min(MAX_IMPS) + GRIDS;
        if row.len() != expected || imps as usize > MAX_IMPS {
            return Err(RowError::Length {
                expected,
                found: row.len(),
            });
        }
        let (packed, grids) = rest.split_at(imps as usize);
        let clan = Clan::unpack(packed).map_err(PositionError::from)?;
        let (first, second) = grids.split_at(PACKED);
        let (first, second) = (grid("first", first)?, grid("second", second)?);
        let problem = problem(flags, first, second)?;
        Ok(Self {
            clan,
            problem,
            step_marked: flags & STEP_MARKED != 0,
        })
    }
}

pub(super) fn write(clan: &Clan, problem: &Problem, step_marked: bool, row: &mut Vec<u32>) {
    let pair = match problem {
        Problem::Pair(..) => SECOND_GRID | PAIR,
        Problem::Free | Problem::Draw(_) => 0,
    };
    row.reserve(HEAD + clan.len() + GRIDS);
    row.extend([clan.len() as u32, pair | u32::from(step_marked)]);
    row.extend(clan.packed());
    for grid in [problem.target(), problem.second_target()] {
        row.extend(grid.unwrap_or(&Grid::ABSENT).packed());
    }
}

fn grid(which: &'static str, packed: &[u32]) -> Result<Grid, PositionError> {
    let mut words = [0; PACKED];
    for (word, &value) in words.iter_mut().zip(packed) {
        *word = value;
    }
    Grid::unpack(&words).map_err(|error| PositionError::Grid { which, error })
}

fn problem(flags: u32, first: Grid, second: Grid) -> Result<Problem, PositionError> {
    let fault = |reason| Err(PositionError::Flags { flags, reason });
    if flags > 7 {
        return fault("only the lowest three bits are used");
    }
    let is_pair = flags & PAIR != 0;
    if is_pair != (flags & SECOND_GRID != 0) {
        return fault("a pair, and no other problem, has a second grid");
    }
    if second.is_present() != is_pair || (is_pair && !first.is_present()) {
        return fault("they do not fit the grids of the row");
    }
    if flags & STEP_MARKED != 0 && first.is_present() && !is_pair {
        return fault("the problem has no step to mark");
    }
    Ok(match (first.is_present(), is_pair) {
        (false, _) => Problem::Free,
        (true, false) => Problem::Draw(first),
        (true, true) => Problem::Pair(first, second),
    })
}
