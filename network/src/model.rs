//! A model that has been loaded and warmed.

use std::fmt;

use crate::cache::VersionId;
use games::RowLayout;
use parking_lot::Mutex;

use crate::{
    batch::{Batch, Outputs, RunError, Runner},
    buckets::Buckets,
    threads::ThreadSpeed,
};

/// Facts about a loaded model.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// Name of its source. Empty: the run's own store.
    pub source: String,
    /// Version of the checkpoint.
    pub version: String,
    /// SHA-256 of its file, in hexadecimal.
    pub digest: String,
    /// Number in this process. Equal for models of equal file, layout and contract.
    pub id: VersionId,
    /// Training step.
    pub step: u64,
    /// Layout of its rows.
    pub layout: RowLayout,
    /// Name of the provider that runs it, for example `openvino-bf16`.
    pub provider: &'static str,
    /// Memory that it counts for, in bytes: the length of its file, for each time that it was compiled.
    pub bytes: u64,
    /// Number of threads that compute a batch.
    pub threads: usize,
    /// Speeds from which that number was chosen; empty if the configuration sets it.
    pub speeds: Vec<ThreadSpeed>,
}

/// A loaded model.
pub struct Model {
    /// Facts about the model.
    pub info: ModelInfo,
    /// Batch sizes that it was warmed for.
    pub buckets: Buckets,
    /// True if it picks the logits of the legal actions that a batch names.
    pub picks_legal: bool,
    runner: Mutex<Box<dyn Runner>>,
}

impl Model {
    /// Makes a model of a runner that was warmed.
    pub fn new(info: ModelInfo, buckets: Buckets, runner: Box<dyn Runner>) -> Self {
        Self {
            info,
            buckets,
            picks_legal: runner.picks_legal(),
            runner: Mutex::new(runner),
        }
    }

    /// Makes a batch of valid rows, at most [`Buckets::largest`]. Rows of one length are padded to the next batch size with
    /// the first row. Rows that differ in length are not padded.
    pub fn batch<'a>(&self, rows: impl Iterator<Item = &'a [u32]>) -> Batch {
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        for row in rows {
            // Numbers of valid rows are far below the limit.
            numbers.extend(
                row.iter()
                    .map(|&number| i32::try_from(number).unwrap_or(i32::MAX)),
            );
            ends.push(numbers.len());
        }
        let Some(row_len) = self.info.layout.row_len() else {
            return Batch::varied(numbers, ends);
        };
        let size = self.buckets.fit(ends.len());
        for _ in ends.len()..size {
            numbers.extend_from_within(..row_len);
        }
        Batch::new(numbers, size)
    }

    /// Executes one batch.
    ///
    /// # Errors
    /// [`RunError`] if the device failed.
    pub fn run(&self, batch: Batch) -> Result<Box<dyn Outputs>, RunError> {
        self.runner.lock().run(batch)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Model")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
