//! A model that has been loaded and warmed.

use std::{collections::VecDeque, fmt};

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
    /// Number of batches that it computes at the same time, each on a thread.
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
    /// One for each batch that is computed at the same time.
    runners: Vec<Mutex<Box<dyn Runner>>>,
}

impl Model {
    /// Makes a model of warmed runners of the same file. It computes as many batches at the same time.
    pub fn new(info: ModelInfo, buckets: Buckets, runners: Vec<Box<dyn Runner>>) -> Self {
        Self {
            info,
            buckets,
            picks_legal: runners.iter().all(|runner| runner.picks_legal()),
            runners: runners.into_iter().map(Mutex::new).collect(),
        }
    }

    /// Makes a batch of valid rows, at most [`Buckets::largest`]. Rows of one length are padded to the next batch size with
    /// the first row. Rows that differ in length are not padded.
    pub fn batch<'a>(&self, rows: impl Iterator<Item = &'a [u32]>) -> Batch {
        // Numbers of valid rows are far below the limit.
        let signed = |&number: &u32| i32::try_from(number).unwrap_or(i32::MAX);
        let mut batch: Batch = rows.map(|row| row.iter().map(signed)).collect();
        if self.info.layout.row_len().is_some() {
            batch.pad(self.buckets.fit(batch.size()));
        }
        batch
    }

    /// Executes one batch on a free runner. Waits if all are busy.
    ///
    /// # Errors
    /// [`RunError`] if the device failed.
    pub fn run(&self, batch: Batch) -> Result<Outputs, RunError> {
        if let Some(mut free) = self.runners.iter().find_map(Mutex::try_lock) {
            return free.run(batch);
        }
        let first = self.runners.first();
        let runner = first.ok_or_else(|| RunError("the model has no runner".into()))?;
        runner.lock().run(batch)
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

/// Number of models that are remembered. A model that was forgotten gets a new number when it is loaded again.
const REMEMBERED: usize = 1024;

/// Assigns numbers to models, by which a cache tells their evaluations apart.
#[derive(Debug, Default)]
pub struct VersionIds {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u32,
    identities: VecDeque<(String, VersionId)>,
}

impl VersionIds {
    /// Returns the number of the model with this [`crate::session::Contract::identity`].
    pub fn of(&self, identity: &str) -> VersionId {
        let mut known = self.known.lock();
        if let Some((_, id)) = known.identities.iter().find(|(there, _)| there == identity) {
            return *id;
        }
        let id = VersionId(known.next);
        known.next = known.next.wrapping_add(1);
        if known.identities.len() >= REMEMBERED {
            known.identities.pop_front();
        }
        known.identities.push_back((identity.to_owned(), id));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_identities_get_equal_numbers_until_they_are_forgotten() {
        let numbers = VersionIds::default();
        let first = numbers.of("first");
        assert_eq!(numbers.of("first"), first);
        for number in 0..REMEMBERED {
            assert_ne!(numbers.of(&number.to_string()), first);
        }
        assert_ne!(numbers.of("first"), first);
    }
}
