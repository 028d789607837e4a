//! What executes batches, as the rest of the server sees it: rows in, logits and values out.

/// Rows back to back, padded to a bucket's size.
#[derive(Clone, Debug)]
pub struct Batch {
    rows: Vec<i32>,
    size: usize,
}

impl Batch {
    /// `size` rows back to back. They have been validated: every number fits an `i32`.
    pub fn new(rows: Vec<i32>, size: usize) -> Self {
        Self { rows, size }
    }

    /// Positions in it, padding included.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The rows.
    pub fn rows(&self) -> &[i32] {
        &self.rows
    }

    /// The rows' memory.
    pub fn into_rows(self) -> Vec<i32> {
        self.rows
    }
}

/// What a batch gave, for as long as it is needed.
pub trait Outputs: Send + Sync {
    /// `[size][actions]`
    fn logits(&self) -> &[f32];
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
}
