//! Problems: the grids to be drawn, a lower bound of the moves that a clan needs to draw them, and example pairs of a task: further pairs
//! that the rule of a problem's own pair made. Examples are context and judge nothing.

use serde::{Deserialize, Serialize};

use super::{
    canonical::Naming,
    clan::{Clan, mix},
    grammar::Color,
    grid::{Grid, PACKED},
};

/// Goal of an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Problem {
    /// No goal: a grid is proposed by marking it as complete, a pair by marking its first grid as a step before. A proposal ends
    /// the episode with the value 0, because nothing judges it.
    #[default]
    Free,
    /// Draw this grid and mark it as complete.
    Draw(Grid),
    /// Draw the first grid and mark it as a step; then draw the second and mark it as complete.
    Pair(Grid, Grid),
}

/// One problem in this many is held out of self-play.
const HELD_OUT: u64 = 16;

/// Result of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkResult {
    /// The step is marked, and the episode continues.
    Step,
    /// The problem is solved.
    Solved,
    /// Without a goal, a grid or a pair is proposed.
    Proposed,
    /// The mark was wrong.
    Oops,
}

impl Problem {
    /// Returns the first grid to draw. `None` if there is no goal.
    pub fn target(&self) -> Option<&Grid> {
        match self {
            Self::Free => None,
            Self::Draw(target) | Self::Pair(target, _) => Some(target),
        }
    }

    /// Returns the second grid of a pair. `None` for other problems.
    pub fn second_target(&self) -> Option<&Grid> {
        match self {
            Self::Free | Self::Draw(_) => None,
            Self::Pair(_, second) => Some(second),
        }
    }

    /// True if the problem is held out of self-play, to measure networks on problems that none of them was trained on. One in
    /// sixteen is, by a hash of its grids. Problems that differ only by a permutation of the colours 2 to 9 are held out
    /// together, because training permutes these colours.
    pub fn is_held_out(&self) -> bool {
        let (mut naming, mut hash) = (Naming::NONE, 0);
        for grid in [self.target(), self.second_target()].into_iter().flatten() {
            naming.rename(grid, |name| hash = mix(hash ^ u64::from(name)));
        }
        self.target().is_some() && hash.is_multiple_of(HELD_OUT)
    }

    /// Returns the result of a mark on this render. `is_step` tells the kind of mark; `is_marked` is true if the step was marked
    /// before.
    pub(super) fn mark(&self, is_step: bool, is_marked: bool, render: &Grid) -> MarkResult {
        match self {
            Self::Free if !is_step => MarkResult::Proposed,
            Self::Free if !is_marked => MarkResult::Step,
            Self::Draw(target) if !is_step && render == target => MarkResult::Solved,
            Self::Pair(first, _) if is_step && !is_marked && render == first => MarkResult::Step,
            Self::Pair(_, second) if !is_step && is_marked && render == second => MarkResult::Solved,
            _ => MarkResult::Oops,
        }
    }

    /// Returns a lower bound of the number of moves to a solution from this clan, marks included.
    pub(super) fn least_moves(&self, is_marked: bool, clan: &Clan) -> u32 {
        match self {
            Self::Free => u32::MAX,
            Self::Draw(target) => least_changes(clan, target) + 1,
            Self::Pair(first, second) if !is_marked => {
                least_changes(clan, first) + size_steps(first.size(), second.size(), first == second) + 2
            }
            Self::Pair(_, second) => least_changes(clan, second) + 1,
        }
    }
}

/// Returns a lower bound of the number of moves to a clan that renders as `target`. A move changes the width or the height by
/// one, or adds one colour that the clan does not have.
fn least_changes(clan: &Clan, target: &Grid) -> u32 {
    let render = clan.render();
    if render == *target {
        return 0;
    }
    let bit = |cell: u8| 1u32 << (cell & 31);
    let wanted = target.cells().iter().fold(0, |set, &cell| set | bit(cell)) & 0x3ff;
    let colors = clan.values().iter().filter_map(|&value| Color::of(value));
    let held = colors.fold(0, |set, color| set | bit(color.get()));
    let missing = (wanted & !held).count_ones();
    (missing + size_steps((clan.width(), clan.height()), target.size(), true)).max(1)
}

/// Returns the number of changes by one from one size to another. At least one if the grids differ.
fn size_steps(from: (usize, usize), to: (usize, usize), is_same: bool) -> u32 {
    let steps = (from.0.abs_diff(to.0) + from.1.abs_diff(to.1)) as u32;
    steps.max(u32::from(!is_same))
}

/// Most examples of a problem.
pub const MAX_EXAMPLES: usize = 3;

/// A pair of grids that belongs to the task of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// First grid.
    pub input: Grid,
    /// Second grid.
    pub output: Grid,
}

impl Example {
    /// Number of `u32` of a packed example.
    pub const PACKED: usize = 2 * PACKED;

    /// Returns the packed grids, the input first. Examples are ordered by these numbers.
    pub fn packed(&self) -> [u32; Self::PACKED] {
        let (input, output) = (self.input.packed(), self.output.packed());
        std::array::from_fn(|at| {
            if at < PACKED {
                input[at]
            } else {
                output[at - PACKED]
            }
        })
    }
}

/// Set of at most [`MAX_EXAMPLES`] different examples, in one order: whatever order they are given in, the sets are equal.
///
/// ```
/// use games::generator::{Example, Examples, Grid};
///
/// let grid = |color| Grid::from_rows(&[vec![color]]);
/// let example = |input, output| Ok::<_, games::generator::GridError>(Example { input: grid(input)?, output: grid(output)? });
/// let (one, other) = (example(1, 2)?, example(3, 4)?);
/// assert_eq!(Examples::new(vec![one, other])?, Examples::new(vec![other, one, other])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Example>", into = "Vec<Example>")]
pub struct Examples(Vec<Example>);

/// Error: pairs of grids cannot be the examples of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExamplesError {
    /// There are too many of them.
    #[error("{0} examples (at most {MAX_EXAMPLES} are possible)")]
    Number(usize),
    /// All cells of a grid are absent.
    #[error("an example has an empty grid")]
    Absent,
    /// The problem is not a pair of grids.
    #[error("only a pair of grids has examples")]
    NoPair,
}

impl Examples {
    /// No examples.
    pub const NONE: Self = Self(Vec::new());

    /// Makes a set of examples. Equal ones count once.
    ///
    /// # Errors
    /// [`ExamplesError`] if there are more than [`MAX_EXAMPLES`], or a grid is empty.
    pub fn new(mut examples: Vec<Example>) -> Result<Self, ExamplesError> {
        examples.sort_by_cached_key(Example::packed);
        examples.dedup();
        if examples.len() > MAX_EXAMPLES {
            return Err(ExamplesError::Number(examples.len()));
        }
        let is_there = |example: &Example| example.input.is_present() && example.output.is_present();
        if !examples.iter().all(is_there) {
            return Err(ExamplesError::Absent);
        }
        Ok(Self(examples))
    }

    /// Returns the examples, ordered by their packed grids.
    pub fn as_slice(&self) -> &[Example] {
        &self.0
    }

    /// Returns the number of examples.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no examples.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<Example>> for Examples {
    type Error = ExamplesError;

    fn try_from(examples: Vec<Example>) -> Result<Self, ExamplesError> {
        Self::new(examples)
    }
}

impl From<Examples> for Vec<Example> {
    fn from(examples: Examples) -> Self {
        examples.0
    }
}
