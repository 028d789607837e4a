//! [`Journal`]: what `minuet up` recorded: the newest figures, and events.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
};

use launcher::{
    up::journal::{FOLDER, LINES, NOW},
    watch::Summary,
};
use serde::Deserialize;
use service::figures::Tail;

/// Most events that are kept.
const EVENTS: usize = 100;

/// The run's figures at one moment.
#[derive(Clone, Debug, Deserialize)]
pub struct Now {
    /// Time of the figures, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The figures.
    #[serde(flatten)]
    pub summary: Summary,
}

/// An event of the run.
#[derive(Clone, Debug, Deserialize)]
pub struct Noted {
    /// Time, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Kind, e.g. `checkpoint`.
    pub event: String,
    /// Lines for people.
    pub text: Vec<String>,
}

/// The files of `minuet up`.
#[derive(Debug)]
pub struct Journal {
    now: PathBuf,
    tail: Tail,
    /// Newest figures; `None` before the first start of the run.
    pub newest: Option<Now>,
    /// Last events, oldest first.
    pub events: VecDeque<Noted>,
}

impl Journal {
    /// Reads the files of the run in `folder` with [`Journal::refresh`].
    pub fn new(folder: &Path) -> Self {
        Self {
            now: folder.join(FOLDER).join(NOW),
            tail: Tail::new(folder.join(FOLDER).join(LINES)),
            newest: None,
            events: VecDeque::new(),
        }
    }

    /// Reads what was written since the last call.
    pub fn refresh(&mut self) {
        // A file that is being replaced is read again a second later.
        let read = fs::read(&self.now)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if read.is_some() {
            self.newest = read;
        }
        self.events.extend(self.tail.read::<Noted>());
        let surplus = self.events.len().saturating_sub(EVENTS);
        self.events.drain(..surplus);
    }
}
