//! A batch of rows, and the trait [`Runner`], which computes one: rows in, logits and values out.

use ort::value::DynValue;

/// Validated rows back to back, padded to the size of a bucket.
#[derive(Clone, Debug)]
pub struct Batch {
    numbers: Vec<i32>,
    /// End of each row.
    ends: Vec<usize>,
    legal: Option<Legal>,
    /// Planes of all positions, if they are expanded already.
    planes: Option<Vec<f32>>,
}

/// Legal actions of a batch's positions, for a model that picks their logits itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legal {
    /// Actions as `[size][width]`. Each position is padded with any action.
    pub actions: Vec<i32>,
    /// Number of places of each position.
    pub width: usize,
}

/// Smallest number of places for legal actions, so that batches have few shapes.
const LEAST_WIDTH: usize = 16;

/// Returns the number of places for legal actions if no position has more than `most`, and the game has `actions`
/// actions.
pub fn legal_width(most: usize, actions: u32) -> usize {
    most.next_power_of_two()
        .max(LEAST_WIDTH)
        .min(actions.max(1) as usize)
}

impl<R: IntoIterator<Item = i32>> FromIterator<R> for Batch {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        for row in rows {
            numbers.extend(row);
            ends.push(numbers.len());
        }
        Self {
            numbers,
            ends,
            legal: None,
            planes: None,
        }
    }
}

impl Batch {
    /// Makes a batch of `size` positions that are expanded already, for a model whose input is planes.
    pub fn of_planes(planes: Vec<f32>, size: usize) -> Self {
        Self {
            numbers: Vec::new(),
            ends: vec![0; size],
            legal: None,
            planes: Some(planes),
        }
    }

    /// Takes the planes out of the batch; `None` if its rows are to be expanded.
    pub(crate) fn take_planes(&mut self) -> Option<Vec<f32>> {
        self.planes.take()
    }

    /// Appends the first row until the batch has `size` rows.
    pub fn pad(&mut self, size: usize) {
        let first = self.ends.first().copied().unwrap_or_default();
        while self.ends.len() < size {
            self.numbers.extend_from_within(..first);
            self.ends.push(self.numbers.len());
        }
    }

    /// Asks for the logits of these actions only, `[size][width]`. Use it only for a runner that picks them
    /// ([`Runner::picks_legal`]).
    pub fn with_legal(mut self, actions: Vec<i32>, width: usize) -> Self {
        self.legal = Some(Legal { actions, width });
        self
    }

    /// Takes the legal actions out of the batch; `None` if the logits of all actions are wanted.
    pub fn take_legal(&mut self) -> Option<Legal> {
        self.legal.take()
    }

    /// Returns the number of positions, including padding.
    pub fn size(&self) -> usize {
        self.ends.len()
    }

    /// Returns all rows, back to back.
    pub fn rows(&self) -> &[i32] {
        &self.numbers
    }

    /// Iterates over the rows.
    pub fn each(&self) -> impl Iterator<Item = &[i32]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let row = self.numbers.get(start..end).unwrap_or_default();
            start = end;
            row
        })
    }

    /// Returns the rows, back to back.
    pub fn into_rows(self) -> Vec<i32> {
        self.numbers
    }
}

/// Outputs of a batch.
#[derive(Debug)]
pub struct Outputs {
    logits: Logits,
    /// Number of logits of a position, if they are those of the batch's legal actions.
    width: Option<usize>,
    values: Vec<f32>,
}

/// Logits of a batch. Those of ONNX Runtime stay in its own memory, because the logits of a chess batch take megabytes.
#[derive(Debug)]
enum Logits {
    Own(Vec<f32>),
    Runtime(DynValue),
}

impl Outputs {
    /// Returns outputs with the logits of all actions, `[size][actions]`, and the values, `[size]`.
    pub fn new(logits: Vec<f32>, values: Vec<f32>) -> Self {
        Self {
            logits: Logits::Own(logits),
            width: None,
            values,
        }
    }

    /// Returns outputs whose logits are a tensor of f32 of ONNX Runtime.
    pub(crate) fn of_runtime(logits: DynValue, values: Vec<f32>) -> Self {
        Self {
            logits: Logits::Runtime(logits),
            width: None,
            values,
        }
    }

    /// Says that the logits are those of the batch's legal actions, `[size][width]`, if `width` is given.
    #[must_use]
    pub fn with_width(self, width: Option<usize>) -> Self {
        Self { width, ..self }
    }

    fn numbers(&self) -> &[f32] {
        match &self.logits {
            Logits::Own(logits) => logits,
            Logits::Runtime(logits) => numbers(logits),
        }
    }

    /// Returns the logits as `[size][actions]`. Empty if only those of legal actions were wanted.
    pub fn logits(&self) -> &[f32] {
        match self.width {
            None => self.numbers(),
            Some(_) => &[],
        }
    }

    /// Returns the logits as `[size][width]` in the order of the batch's legal actions, and the width, if only those
    /// were wanted.
    pub fn legal_logits(&self) -> Option<(&[f32], usize)> {
        self.width.map(|width| (self.numbers(), width))
    }

    /// Returns the values as `[size]`, in [-1, 1], from the point of view of the player to act.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// Returns the numbers of an output of ONNX Runtime; none if they are not f32.
pub(crate) fn numbers(value: &DynValue) -> &[f32] {
    value
        .try_extract_tensor::<f32>()
        .map_or(&[], |(_, numbers)| numbers)
}

/// Error: the device did not compute a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RunError(pub String);

/// Executes batches, one at a time.
pub trait Runner: Send {
    /// Executes one batch.
    ///
    /// # Errors
    /// [`RunError`] if the device failed. The next batch may succeed.
    fn run(&mut self, batch: Batch) -> Result<Outputs, RunError>;

    /// True if the runner picks the logits of the legal actions that a batch names.
    fn picks_legal(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_equal_and_of_different_lengths_are_iterated_and_padded() {
        let rows = |batch: &Batch| batch.each().map(<[i32]>::to_vec).collect::<Vec<_>>();
        let mut equal: Batch = [[1, 2], [3, 4]].into_iter().collect();
        assert_eq!((equal.size(), rows(&equal)), (2, vec![vec![1, 2], vec![3, 4]]));
        equal.pad(4);
        assert_eq!(
            (equal.rows(), equal.size()),
            ([1, 2, 3, 4, 1, 2, 1, 2].as_slice(), 4)
        );
        equal.pad(3);
        assert_eq!(equal.size(), 4, "never cut");
        let varied: Batch = [vec![1], vec![2, 3, 4]].into_iter().collect();
        assert_eq!((varied.size(), rows(&varied)), (2, vec![vec![1], vec![2, 3, 4]]));
    }
}
