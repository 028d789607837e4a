//! The run's own record of what happened, in `up/`: [`Journal`].
//!
//! | file | contents |
//! |---|---|
//! | `up/metrics.jsonl` | a line for each event, and every ten seconds one with all figures; bounded |
//! | `up/now.json` | the newest figures, replaced every second |
//!
//! A line is that of `minuet up --json`, with `text`: the lines for people. `now.json` has the form of an event `summary`. It is overwritten
//! in place, so a reader that finds half a file reads again.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use service::figures::Lines;
use tokio::time::Instant;

use crate::{
    event::{self, Event},
    screen::text,
    watch::Summary,
};

/// Folder of the files in the run's folder.
pub const FOLDER: &str = "up";
/// File of the newest figures, in [`FOLDER`].
pub const NOW: &str = "now.json";
/// File of events and figures, in [`FOLDER`].
pub const LINES: &str = "metrics.jsonl";
/// Time between two lines of figures.
const INTERVAL: Duration = Duration::from_secs(10);

/// Writes what happens in a run.
#[derive(Debug)]
pub struct Journal {
    lines: Lines,
    now: PathBuf,
    /// Time of the last line of figures.
    written: Option<Instant>,
    /// True while the last attempt to write failed.
    has_failed: bool,
}

impl Journal {
    /// Opens the files in the folder of a run.
    ///
    /// # Errors
    /// The file system.
    pub fn open(run: &Path) -> io::Result<Self> {
        let folder = run.join(FOLDER);
        Ok(Self {
            lines: Lines::open(&folder.join(LINES))?,
            now: folder.join(NOW),
            written: None,
            has_failed: false,
        })
    }

    /// Records an event. Returns a warning if that is the first attempt to fail.
    pub fn event(&mut self, event: &Event) -> Option<Event> {
        let written = event::entry(event, text::lines(event)).map_err(io::Error::from);
        let written = written.and_then(|entry| self.lines.append(&entry));
        self.warning(written)
    }

    /// Records figures. Returns a warning if that is the first attempt to fail.
    pub fn summary(&mut self, summary: &Summary) -> Option<Event> {
        let event = Event::Summary(Box::new(summary.clone()));
        let is_due = self.written.is_none_or(|written| written.elapsed() >= INTERVAL);
        let mut write = || {
            let entry = event::entry(&event, Vec::new())?;
            fs::write(&self.now, serde_json::to_vec(&entry)?)?;
            if is_due {
                self.lines.append(&entry)?;
            }
            io::Result::Ok(())
        };
        let written = write();
        if is_due {
            self.written = Some(Instant::now());
        }
        self.warning(written)
    }

    /// A full disk must not stop the run, and one warning is enough.
    fn warning(&mut self, written: io::Result<()>) -> Option<Event> {
        let error = match written {
            Ok(()) => {
                self.has_failed = false;
                return None;
            }
            Err(error) => error,
        };
        let text = format!("cannot record figures in {}: {error}", self.now.display());
        (!std::mem::replace(&mut self.has_failed, true)).then_some(Event::Warning { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(run: &Path) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(run.join(FOLDER).join(LINES)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn figures_are_kept_every_ten_seconds_and_the_newest_ones_always() {
        let run = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(run.path()).unwrap();
        let event = Event::FirstGame { after_seconds: 7.0 };
        assert!(journal.event(&event).is_none());
        for second in 0..25 {
            let summary = Summary {
                after_seconds: f64::from(second),
                ..Summary::default()
            };
            assert!(journal.summary(&summary).is_none());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let lines = lines(run.path());
        assert_eq!(lines[0]["event"], "first-game");
        assert_eq!(lines[0]["text"][0], "first game stored after 7 s");
        let after: Vec<f64> = lines[1..]
            .iter()
            .filter_map(|line| line["after_seconds"].as_f64())
            .collect();
        assert_eq!(after, [0.0, 10.0, 20.0]);
        let now: Summary =
            serde_json::from_slice(&fs::read(run.path().join(FOLDER).join(NOW)).unwrap()).unwrap();
        assert_eq!(now.after_seconds, 24.0);
    }

    #[tokio::test]
    async fn a_disk_that_cannot_be_written_gives_one_warning() {
        let run = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(run.path()).unwrap();
        journal.now = run.path().join("missing/now.json");
        let warning = journal.summary(&Summary::default());
        assert!(matches!(warning, Some(Event::Warning { text }) if text.contains("now.json")));
        assert!(journal.summary(&Summary::default()).is_none());
    }
}
