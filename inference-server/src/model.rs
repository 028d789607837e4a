//! A model that has been loaded and warmed.

use std::fmt;

use evaluation_cache::VersionId;
use games::RowLayout;
use parking_lot::Mutex;

use crate::{
    buckets::Buckets,
    runner::{Batch, Outputs, RunError, Runner},
};

/// What is known about a loaded model.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// The source it is from; empty: the run's own store.
    pub source: String,
    /// The checkpoint's version.
    pub version: String,
    /// The sha-256 of its file, in hexadecimal: equal digests give equal answers.
    pub digest: String,
    /// Its number in this process; equal digests have equal numbers.
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
