//! How often training has diverged in a run. A second time in a row ends the process before any checkpoint or scrape could tell,
//! so the count is kept in the learner's folder and exported again by the next process.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

const FILE: &str = "divergences";

/// The count, on the disk and as a metric.
#[derive(Debug)]
pub struct Divergences {
    file: PathBuf,
    count: u64,
}

impl Divergences {
    /// The count of a learner's folder. Nothing is exported yet.
    pub fn open(folder: &Path) -> Self {
        let file = folder.join(FILE);
        let kept = fs::read_to_string(&file).and_then(|text| text.trim().parse().map_err(io::Error::other));
        let count = kept.unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(path = %file.display(), %error, "the count of divergences begins with the checkpoint's");
            }
            0
        });
        Self { file, count }
    }

    /// Goes on from a checkpoint, whose count is the higher one where the folder is new; exports the count and gives it. Not
    /// earlier: an alert takes what comes after a zero for news.
    pub fn resume(&mut self, published: u64) -> u64 {
        self.count = self.count.max(published);
        self.export();
        self.count
    }

    /// Training has diverged once more. A disk that is full costs the count, not the training.
    pub fn add(&mut self) -> u64 {
        self.count += 1;
        let partial = self.file.with_extension("partial");
        let written =
            fs::write(&partial, self.count.to_string()).and_then(|()| fs::rename(&partial, &self.file));
        if let Err(error) = written {
            tracing::warn!(path = %self.file.display(), %error, "cannot write the count of divergences");
        }
        self.export();
        self.count
    }

    fn export(&self) {
        metrics::counter!("minuet_learner_divergences_total").absolute(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_outlives_the_process_and_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Divergences::open(folder.path());
        assert_eq!(first.resume(0), 0);
        assert_eq!((first.add(), first.add()), (1, 2));
        // The checkpoint is from before.
        assert_eq!(Divergences::open(folder.path()).resume(0), 2);
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(Divergences::open(elsewhere.path()).resume(2), 2);
        fs::write(folder.path().join(FILE), "no number").unwrap();
        assert_eq!(Divergences::open(folder.path()).resume(1), 1);
    }
}
