//! Example pairs of a task: further pairs that the rule of a problem's own pair made. They are context and judge nothing.

use serde::{Deserialize, Serialize};

use super::grid::{Grid, PACKED};

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
