//! Representations: positions as rows of `u32`, and the inputs of a network that the rows expand to.
//!
//! A representation is a type that implements [`Codec`], and one variant of [`RowForm`](crate::RowForm). Servers, clients
//! and the learner use this trait only, so that they need no knowledge of any representation:
//!
//! | task | method |
//! |---|---|
//! | split rows that follow each other without gaps, check them | [`Codec::first_row_len`], [`Codec::validate`] |
//! | expand a batch into the inputs of a network | [`Codec::expander`], [`Expander::push`], [`Expander::inputs`] |
//! | find the logit of each policy entry | [`Expander::candidates`], [`Expander::dense_logits`] |
//! | augment training samples by symmetries | [`crate::RowSymmetries`] |

use std::{borrow::Cow, fmt, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

/// Kind of policy head that a network over a game's rows should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyHead {
    /// A linear layer with one output for each action. Suits any actions.
    Dense,
    /// Convolutions with one output plane for as many actions as the board has squares: action `squares·plane + square` belongs to
    /// a square. The actions after the last whole plane, fewer than the squares, belong to the whole board, e.g. a pass.
    Planes,
    /// One layer, applied to each part of a position that has actions of its own.
    PerPart,
}

/// Error: a row or a layout is not valid. The message names the first wrong value or contradiction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RowError(String);

impl RowError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    /// Returns the error for a layout that contradicts itself.
    pub(crate) fn of_layout(reason: impl std::fmt::Display) -> Self {
        Self(format!("the row layout is not consistent: {reason}"))
    }

    /// Returns the error for a row of `found` values where `expected` are needed.
    pub fn of_length(expected: usize, found: usize) -> Self {
        Self(format!("the row has {found} values instead of {expected}"))
    }
}

/// One representation of positions as rows.
pub trait Codec: fmt::Debug + Send + Sync {
    /// Returns the numbers of values that a row can have.
    fn row_lengths(&self) -> RangeInclusive<usize>;

    /// Returns the number of values of the first of several valid rows without gaps between them; 0 if there is none.
    fn first_row_len(&self, rows: &[u32]) -> usize;

    /// Returns the number of actions, of the layout's `actions`, that the position of a valid row can have at all.
    fn actions_in(&self, row: &[u32], actions: u32) -> u32;

    /// Returns the least value that a position can have for the player to act: -1, or 0 in games that cannot be lost.
    fn lowest_value(&self) -> f32;

    /// Checks that the representation does not contradict itself, the number of actions or the policy head.
    ///
    /// # Errors
    /// [`RowError`] with the first contradiction.
    fn check(&self, actions: u32, head: PolicyHead) -> Result<(), RowError>;

    /// Checks one row. Any numbers are safe to check.
    ///
    /// # Errors
    /// [`RowError`] that names the first wrong value.
    fn validate(&self, row: &[u32]) -> Result<(), RowError>;

    /// True if a valid row holds a problem with two goals, one after the other. By default there are none.
    fn is_pair(&self, row: &[u32]) -> bool {
        let _ = row;
        false
    }

    /// Returns an empty expander of batches.
    fn expander(&self) -> Box<dyn Expander>;
}

/// One input of a network for a batch: an int32 tensor, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// Name of the graph's input.
    pub name: &'static str,
    /// Sizes of all dimensions but the first.
    pub inner: &'a [usize],
    /// Numbers of the tensor. Their count divided by the product of `inner` is the size of the first dimension.
    pub numbers: &'a [i32],
}

impl Input<'_> {
    /// Returns the sizes of all dimensions.
    pub fn shape(&self) -> Vec<usize> {
        let inner: usize = self.inner.iter().product();
        std::iter::once(self.numbers.len() / inner.max(1))
            .chain(self.inner.iter().copied())
            .collect()
    }
}

/// Policy entries of one position, each with its place among the network's logits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Policy entries over which the position's softmax is taken, ascending.
    pub entries: Vec<u32>,
    /// Place of each entry's logit in the flat output `policy_logits` of the batch.
    pub logits: Vec<usize>,
}

impl Candidates {
    /// Returns the place of a policy entry among the candidates; `None` if it is not one.
    pub fn place(&self, entry: u32) -> Option<usize> {
        self.entries.binary_search(&entry).ok()
    }
}

/// Expands rows into the inputs of a network, batch by batch. Memory is used again for the next batch.
///
/// ```
/// use games::{Game, Symmetry, codec::Codec, connect_four::ConnectFour};
///
/// let layout = ConnectFour::layout(Default::default());
/// let mut row = Vec::new();
/// ConnectFour::EMPTY.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
///
/// let mut expander = layout.codec().expander();
/// expander.push(&row)?;
/// expander.push(&row)?;
/// let inputs = expander.inputs();
/// assert_eq!(inputs[0].name, "indices");
/// assert_eq!(inputs[0].shape(), [2, 43]);
/// # Ok::<(), games::RowError>(())
/// ```
pub trait Expander: fmt::Debug + Send {
    /// Removes all positions.
    fn clear(&mut self);

    /// Adds a position.
    ///
    /// # Errors
    /// [`RowError`] if the row is not valid. The batch is unchanged then.
    fn push(&mut self, row: &[u32]) -> Result<(), RowError>;

    /// Returns the inputs of the network for all positions so far, in the order of the graph's inputs. An empty batch
    /// gives inputs of size 0 with the same names and inner sizes, which a loader compares with a model's.
    fn inputs(&mut self) -> Vec<Input<'_>>;

    /// Returns the candidates of the position added last. `None` if the softmax is taken over all entries of the policy,
    /// which are at `position · actions + entry`.
    fn candidates(&self) -> Option<Candidates>;

    /// Returns the number of logits that the network gives for the positions so far, in a layout of `actions` actions.
    fn logit_count(&self, actions: usize) -> usize;

    /// Returns the policy logits as `[positions][actions]`, from those that the network gives. Entries that have no logit
    /// get the least `f32`, so that their prior is 0.
    fn dense_logits<'a>(&self, logits: &'a [f32], actions: usize) -> Cow<'a, [f32]>;
}
