//! Counts how often training has diverged in a run.
//!
//! The second divergence in a row ends the process before a checkpoint or a scrape of the metrics could record it. So the count
//! is kept in a file of the learner's folder, and the next process exports it again.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::metrics::Metrics;

const FILE: &str = "divergences";

/// Number of divergences, in a file and as a metric.
#[derive(Debug)]
pub struct Divergences {
    file: PathBuf,
    count: u64,
    metrics: Arc<Metrics>,
}

impl Divergences {
    /// Reads the count from a learner's folder. The metric is not exported before [`Divergences::resume`].
    pub fn open(folder: &Path, metrics: Arc<Metrics>) -> Self {
        let file = folder.join(FILE);
        let read = fs::read_to_string(&file).and_then(|text| text.trim().parse().map_err(io::Error::other));
        let count = read.unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %file.display(), %error, "cannot read the count of divergences; taking the checkpoint's");
            }
            0
        });
        Self { file, count, metrics }
    }

    /// Returns the number of divergences since a checkpoint, whose count is `published`.
    pub fn since(&self, published: u64) -> u64 {
        self.count.saturating_sub(published)
    }

    /// Continues from a checkpoint, exports the count and returns it. The checkpoint's count is the higher one if the folder is new.
    /// The metric is not exported earlier, because the alert takes a rise from zero for a new divergence.
    pub fn resume(&mut self, published: u64) -> u64 {
        self.count = self.count.max(published);
        self.metrics.set_divergences(self.count);
        self.count
    }

    /// Counts one more divergence and returns the count. A failed write is logged and does not stop training.
    pub fn add(&mut self) -> u64 {
        self.count += 1;
        if let Err(error) = durable::write(&self.file, self.count.to_string().as_bytes()) {
            tracing::warn!(path = %self.file.display(), %error, "cannot write the count of divergences");
        }
        self.metrics.set_divergences(self.count);
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_survives_a_new_process_and_a_new_folder() {
        let open = |folder: &Path| Divergences::open(folder, Arc::default());
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(folder.path());
        assert_eq!(first.resume(0), 0);
        assert_eq!((first.add(), first.add()), (1, 2));
        // The checkpoint is from before.
        assert_eq!(open(folder.path()).since(1), 1);
        assert_eq!(open(folder.path()).resume(0), 2);
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(open(elsewhere.path()).resume(2), 2);
        fs::write(folder.path().join(FILE), "no number").unwrap();
        assert_eq!(open(folder.path()).resume(1), 1);
    }
}
