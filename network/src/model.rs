//! A model that has been loaded and warmed.

use std::fmt;

use crate::cache::VersionId;
use games::RowLayout;
use parking_lot::Mutex;

use crate::{
    batch::{Batch, Outputs, RunError, Runner},
    buckets::Buckets,
};

/// What is known about a loaded model.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// The source it is from; empty: the run's own store.
    pub source: String,
    /// The checkpoint's version.
    pub version: String,
    /// The sha-256 of its file, in hexadecimal.
    pub digest: String,
    /// Its number in this process: the same where file, layout and contract are the same.
    pub id: VersionId,
    /// Training step.
    pub step: u64,
    /// What its rows mean.
    pub layout: RowLayout,
    /// What runs it, e.g. `openvino-bf16`.
    pub provider: &'static str,
    /// Memory it is counted with, in bytes: its file, once for each time it was compiled.
    pub bytes: u64,
}

/// A loaded model.
pub struct Model {
    /// What is known about it.
    pub info: ModelInfo,
    /// The batch sizes it was warmed for.
    pub buckets: Buckets,
    /// Whether it picks legal actions' logits itself, if a batch says which.
    pub picks_legal: bool,
    runner: Mutex<Box<dyn Runner>>,
}

impl Model {
    /// A model that is ready to run.
    pub fn new(info: ModelInfo, buckets: Buckets, runner: Box<dyn Runner>) -> Self {
        Self {
            info,
            buckets,
            picks_legal: runner.picks_legal(),
            runner: Mutex::new(runner),
        }
    }

    /// Valid rows as a batch, at most [`Buckets::largest`] of them: padded to the next bucket's size with the first row, but for
    /// rows that differ in length, which need no padding.
    pub fn batch<'a>(&self, rows: impl Iterator<Item = &'a [u32]>) -> Batch {
        let (mut numbers, mut ends) = (Vec::new(), Vec::new());
        for row in rows {
            // Their numbers are far below the limit.
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
    /// [`RunError`] where the device failed.
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
