//! What happens in a run, as people and programs are told. With `--json` each event is one line:
//! `{"event":"role-started","at_ms":…,…}`. Fields are added, never renamed.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::watch::Summary;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The run begins or goes on; its processes are about to be started.
    Started {
        /// The run's folder.
        run: String,
        /// What is played.
        game: String,
        /// The folder was empty.
        new: bool,
        /// Where actors find the inference server.
        inference: String,
        /// Where the replay store is.
        replay: String,
        /// The processes and their metrics pages.
        processes: Vec<Process>,
    },
    /// A process of an earlier start is still there; the run waits for its end.
    LeftOver {
        /// The process's name.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// A process was started.
    RoleStarted {
        /// The process's name.
        name: String,
        /// Its number.
        pid: u32,
    },
    /// A process answers; a server has what it needs to serve.
    RoleReady {
        /// The process's name.
        name: String,
        /// Since it was started.
        after_seconds: f64,
    },
    /// A process ended that nobody asked to; it will be started again.
    RoleExited {
        /// The process's name.
        name: String,
        /// How it ended: "exit status: 1", "signal: 9 (SIGKILL)".
        status: String,
        /// How long it ran.
        after_seconds: f64,
        /// It is started again after so long.
        again_in_seconds: f64,
        /// The last lines of its log, where it did not live long.
        last_lines: Vec<String>,
    },
    /// A process cannot be kept running: the run stops.
    RoleFailed {
        /// The process's name.
        name: String,
        /// Why it is given up.
        reason: String,
        /// Its log.
        log: String,
        /// The last lines of the log.
        last_lines: Vec<String>,
    },
    /// Something went wrong that the run can do without.
    Warning {
        /// What it is.
        text: String,
    },
    /// The first game of the run is stored.
    FirstGame {
        /// Since `minuet up` was started.
        after_seconds: f64,
    },
    /// A checkpoint was published.
    Checkpoint {
        /// Its version.
        version: String,
        /// Training steps behind it; 0: an untrained network.
        step: u64,
        /// Positions it was trained on, repeats counted.
        positions_seen: u64,
        /// Since `minuet up` was started.
        after_seconds: f64,
    },
    /// The rating has found a better checkpoint: the label `best` moved.
    Promoted {
        /// The version.
        version: String,
        /// Training steps behind it.
        step: u64,
        /// Since `minuet up` was started.
        after_seconds: f64,
    },
    /// The inference server answers with another version.
    Serving {
        /// The version.
        version: String,
        /// Since `minuet up` was started.
        after_seconds: f64,
    },
    /// The run's figures.
    Summary(Box<Summary>),
    /// The run stops.
    Stopping {
        /// Why.
        reason: String,
    },
    /// A process ended as asked.
    RoleStopped {
        /// The process's name.
        name: String,
        /// It did not end in time and was killed.
        killed: bool,
    },
    /// Everything has ended; what is kept.
    Stopped(Kept),
}

/// A process of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Its Prometheus page.
    pub metrics: String,
}

/// What a run has when it stops, and goes on with when it is started again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Kept {
    /// The run's folder.
    pub run: String,
    /// Since `minuet up` was started.
    pub after_seconds: f64,
    /// Stored games; `None` where the store could not say.
    pub games: Option<u64>,
    /// Positions ever stored; `None` where the store could not say.
    pub positions: Option<u64>,
    /// The newest checkpoint, if there is one.
    pub checkpoint: Option<String>,
    /// Processes that had to be killed.
    pub killed: Vec<String>,
}

/// The event as a line of JSON, with the time of day in milliseconds since the Unix epoch.
///
/// # Errors
/// None that could happen: every field has a JSON form.
pub fn line(event: &Event) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        at_ms: u64,
        #[serde(flatten)]
        event: &'a Event,
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    serde_json::to_string(&Line {
        at_ms: since.as_millis() as u64,
        event,
    })
}
