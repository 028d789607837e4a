//! What executes batches, as the rest of the server sees it: rows in, logits and values out.

/// Rows back to back, padded to a bucket's size.
#[derive(Clone, Debug)]
pub struct Batch {
    numbers: Vec<i32>,
    /// Where each row ends, where they differ in length.
    ends: Vec<usize>,
    size: usize,
    legal: Option<Legal>,
}

/// The legal actions of a batch's positions, for a model that picks their logits itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legal {
    /// `[size][width]`, each position's padded with any action.
    pub actions: Vec<i32>,
    /// Places for each position.
    pub width: usize,
}

/// The fewest places for legal actions, so that batches have few shapes.
const LEAST_WIDTH: usize = 16;

/// Places for legal actions where no position has more than `most`, of so many `actions` that there are.
pub fn legal_width(most: usize, actions: u32) -> usize {
    most.next_power_of_two()
        .max(LEAST_WIDTH)
        .min(actions.max(1) as usize)
}

impl Batch {
    /// `size` rows of one length back to back. They have been validated: every number fits an `i32`.
    pub fn new(numbers: Vec<i32>, size: usize) -> Self {
        Self {
            numbers,
            ends: Vec::new(),
            size,
            legal: None,
        }
    }

    /// The same, and only these actions' logits are wanted: `[size][width]`, for runners that pick them.
    pub fn with_legal(mut self, actions: Vec<i32>, width: usize) -> Self {
        self.legal = Some(Legal { actions, width });
        self
    }

    /// Takes the legal actions out, where only their logits are wanted.
    pub fn take_legal(&mut self) -> Option<Legal> {
        self.legal.take()
    }

    /// Rows that differ in length, each of which ends at one of `ends`.
    pub fn varied(numbers: Vec<i32>, ends: Vec<usize>) -> Self {
        Self {
            size: ends.len(),
            numbers,
            ends,
            legal: None,
        }
    }

    /// Positions in it, padding included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All rows, back to back.
    pub fn rows(&self) -> &[i32] {
        &self.numbers
    }

    /// One row after the other.
    pub fn each(&self) -> impl Iterator<Item = &[i32]> {
        let equal = self.numbers.len() / self.size.max(1);
        let end = move |number: usize| self.ends.get(number).copied().unwrap_or((number + 1) * equal);
        (0..self.size).map(move |number| {
            let start = number.checked_sub(1).map_or(0, end);
            self.numbers.get(start..end(number)).unwrap_or_default()
        })
    }

    /// The rows' memory.
    pub fn into_rows(self) -> Vec<i32> {
        self.numbers
    }
}

/// What a batch gave, for as long as it is needed.
pub trait Outputs: Send + Sync {
    /// `[size][actions]`; nothing where only legal ones were wanted.
    fn logits(&self) -> &[f32];
    /// `[size][width]` and the width, in the order of the batch's legal actions, where only those were wanted.
    fn legal_logits(&self) -> Option<(&[f32], usize)> {
        None
    }
    /// `[size]`, in [-1, 1], from the point of view of the player to act.
    fn values(&self) -> &[f32];
}

/// A batch that the device did not compute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RunError(pub String);

/// Executes batches, one at a time.
pub trait Runner: Send {
    /// Executes one.
    ///
    /// # Errors
    /// [`RunError`] where the device failed; the next batch may succeed.
    fn run(&mut self, batch: Batch) -> Result<Box<dyn Outputs>, RunError>;

    /// Whether it picks legal actions' logits itself, if the batch says which.
    fn picks_legal(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_length_and_of_many() {
        let rows = |batch: &Batch| batch.each().map(<[i32]>::to_vec).collect::<Vec<_>>();
        assert_eq!(rows(&Batch::new(vec![1, 2, 3, 4], 2)), [[1, 2], [3, 4]]);
        let varied = Batch::varied(vec![1, 2, 3, 4], vec![1, 4]);
        assert_eq!((varied.size(), rows(&varied)), (2, vec![vec![1], vec![2, 3, 4]]));
    }
}
