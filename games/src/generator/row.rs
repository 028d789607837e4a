//! Row of a position: its packed clan and grids, about 300 bytes, and 128 bytes for each example.
//!
//! `[imps, flags, imps × u32, 16 × u32 first grid, 16 × u32 second grid, examples × 2 × 16 × u32]`. Bit 0 of the flags: the step is marked
//! (of a pair, or without a problem); bit 1: there is a second grid; bit 2: the problem is a pair; bits 3 and 4: number of examples. All
//! cells of a missing grid are absent. Examples differ and ascend, so that a position has one row. The present render is not part of the
//! row, because it follows from the clan.

use super::{
    clan::Clan,
    grammar::MAX_IMPS,
    grid::{Grid, PACKED},
    problem::{Example, Examples, MAX_EXAMPLES, Problem},
};
use crate::codec::RowError;

/// Number of values before the imps.
const HEAD: usize = 2;
/// Number of values of the grids of the problem, after the imps.
const GRIDS: usize = 2 * PACKED;
const STEP_MARKED: u32 = 1;
const SECOND_GRID: u32 = 2;
const PAIR: u32 = 4;
/// Place of the lowest bit of the number of examples.
const EXAMPLES: u32 = 3;
/// Largest flags.
const MOST: u32 = (1 << (EXAMPLES + 2)) - 1;

/// Content of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClanPosition {
    /// Present clan.
    pub clan: Clan,
    /// Problem of the episode.
    pub problem: Problem,
    /// Examples of the task of a pair.
    pub examples: Examples,
    /// True if the first grid of a pair was marked as a step.
    pub step_marked: bool,
}

/// Returns the error for flags that contradict the grids or each other.
fn wrong_flags(flags: u32, reason: &str) -> RowError {
    RowError::new(format!("flags {flags}: {reason}"))
}

/// Smallest and largest number of values of a row without examples.
pub(crate) const LENGTHS: (usize, usize) = (HEAD + 4 + GRIDS, HEAD + MAX_IMPS + GRIDS);

/// Returns the number of values of the row of a clan of `imps` imps with these flags.
const fn length(imps: u32, flags: u32) -> usize {
    let imps = imps as usize;
    let imps = if imps < MAX_IMPS { imps } else { MAX_IMPS };
    HEAD + imps + GRIDS + examples_in(flags) * Example::PACKED
}

/// Returns the number of examples that these flags tell.
const fn examples_in(flags: u32) -> usize {
    (flags >> EXAMPLES) as usize & MAX_EXAMPLES
}

/// True if the problem of a valid row is a pair.
pub(super) fn is_pair(row: &[u32]) -> bool {
    row.get(1).is_some_and(|flags| flags & PAIR != 0)
}

/// Returns the number of values of the first of several rows that follow each other. `None` if there is none.
pub(super) fn first_length(rows: &[u32]) -> Option<usize> {
    let &imps = rows.first()?;
    let flags = rows.get(1).copied().unwrap_or_default();
    Some(length(imps, flags).min(rows.len()))
}

/// Returns the imps of a row, and its grids with those of the examples. Both are empty if the row is too short.
pub(super) fn parts_mut(row: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let imps = row.first().map_or(0, |&imps| (imps as usize).min(MAX_IMPS));
    row.get_mut(HEAD..)
        .and_then(|rest| rest.split_at_mut_checked(imps))
        .unwrap_or_default()
}

/// Puts the examples among the grids of a row (see [`parts_mut`]) into their order.
pub(super) fn sort_examples(grids: &mut [u32]) {
    let (examples, _) = grids
        .get_mut(GRIDS..)
        .unwrap_or_default()
        .as_chunks_mut::<{ Example::PACKED }>();
    examples.sort_unstable();
}

impl ClanPosition {
    /// Appends the row of the position to `row`.
    pub fn write(&self, row: &mut Vec<u32>) {
        write(&self.clan, &self.problem, &self.examples, self.step_marked, row);
    }

    /// Reads a row. Any list of numbers is safe to read.
    ///
    /// # Errors
    /// [`RowError`] if the row is not valid.
    pub fn read(row: &[u32]) -> Result<Self, RowError> {
        let &[imps, flags, ref rest @ ..] = row else {
            return Err(RowError::of_length(LENGTHS.0, row.len()));
        };
        let expected = length(imps, flags);
        if row.len() != expected || imps as usize > MAX_IMPS {
            return Err(RowError::of_length(expected, row.len()));
        }
        let (packed, grids) = rest.split_at(imps as usize);
        let clan = Clan::unpack(packed).map_err(|error| RowError::new(error.to_string()))?;
        let (grids, examples) = grids.split_at(GRIDS);
        let [first, second] = pair(["first", "second"], grids)?;
        let problem = problem(flags, first, second)?;
        Ok(Self {
            clan,
            examples: read_examples(flags, examples)?,
            problem,
            step_marked: flags & STEP_MARKED != 0,
        })
    }
}

pub(super) fn write(
    clan: &Clan,
    problem: &Problem,
    examples: &Examples,
    step_marked: bool,
    row: &mut Vec<u32>,
) {
    let pair = match problem {
        Problem::Pair(..) => SECOND_GRID | PAIR,
        Problem::Free | Problem::Draw(_) => 0,
    };
    let flags = (examples.len() as u32) << EXAMPLES | pair | u32::from(step_marked);
    row.reserve(length(clan.len() as u32, flags));
    row.extend([clan.len() as u32, flags]);
    row.extend(clan.packed());
    for grid in [problem.target(), problem.second_target()] {
        row.extend(grid.unwrap_or(&Grid::ABSENT).packed());
    }
    row.extend(examples.as_slice().iter().flat_map(Example::packed));
}

/// Reads two grids, one after the other. `names` are for errors.
fn pair(names: [&'static str; 2], packed: &[u32]) -> Result<[Grid; 2], RowError> {
    let (first, second) = packed.split_at(PACKED.min(packed.len()));
    Ok([grid(names[0], first)?, grid(names[1], second)?])
}

/// Reads the examples of a row, which must be in order.
fn read_examples(flags: u32, packed: &[u32]) -> Result<Examples, RowError> {
    if packed.is_empty() {
        return Ok(Examples::NONE);
    }
    if flags & PAIR == 0 {
        return Err(wrong_flags(flags, "only a pair has examples"));
    }
    if !packed
        .as_chunks::<{ Example::PACKED }>()
        .0
        .is_sorted_by(|one, next| one < next)
    {
        return Err(RowError::new("examples must ascend and differ"));
    }
    let names = ["first of an example", "second of an example"];
    let pairs = packed.chunks(Example::PACKED).map(|packed| {
        let [input, output] = pair(names, packed)?;
        Ok(Example { input, output })
    });
    let pairs = pairs.collect::<Result<Vec<_>, RowError>>()?;
    Examples::new(pairs).map_err(|_| wrong_flags(flags, "a grid of an example is empty"))
}

fn grid(which: &'static str, packed: &[u32]) -> Result<Grid, RowError> {
    let mut words = [0; PACKED];
    let length = packed.len().min(PACKED);
    words[..length].copy_from_slice(&packed[..length]);
    Grid::unpack(&words).map_err(|error| RowError::new(format!("the {which} grid: {error}")))
}

fn problem(flags: u32, first: Grid, second: Grid) -> Result<Problem, RowError> {
    let fault = |reason| Err(wrong_flags(flags, reason));
    if flags > MOST {
        return fault("only the lowest five bits are used");
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
