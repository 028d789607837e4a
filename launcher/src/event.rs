//! Events of a run, as `minuet up` reports them. With `--json` each event is one line:
//! `{"event":"role-started","at_ms":…,…}`. Fields are added, never renamed.

use std::time::Duration;

use checkpoints::Manifest;
use serde::Serialize;
use service::role::Role;

use crate::{moment, run::choices::Choices, watch::Summary};

/// An event of a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The studio's pages will be at this address.
    Studio {
        /// Address for a browser.
        url: String,
    },
    /// The run begins or continues; its processes are about to be started.
    Started {
        /// The run's folder.
        run: String,
        /// Game.
        game: String,
        /// True if the folder was empty.
        new: bool,
        /// Origin of the settings of a new run, if nobody tuned the game.
        #[serde(skip_serializing_if = "Option::is_none")]
        settings: Option<String>,
        /// Address of the inference server.
        inference: String,
        /// Address of the replay store.
        replay: String,
        /// The processes and their metrics pages.
        processes: Vec<Process>,
    },
    /// A process of an earlier start is still running; the run waits for its end.
    LeftOver {
        /// The process's name.
        name: String,
        /// Process number.
        pid: u32,
    },
    /// A process was started.
    RoleStarted {
        /// The process's name.
        name: String,
        /// Process number.
        pid: u32,
    },
    /// A process answers, and a server is ready to serve.
    RoleReady {
        /// The process's name.
        name: String,
        /// Seconds since the process was started.
        after_seconds: f64,
    },
    /// A process ended unexpectedly and will be started again.
    RoleExited {
        /// The process's name.
        name: String,
        /// Exit status: "exit status: 1", "signal: 9 (SIGKILL)".
        status: String,
        /// Seconds that the process ran.
        after_seconds: f64,
        /// Seconds until the process is started again.
        again_in_seconds: f64,
        /// Last lines of the log, if the process ran only for a short time.
        last_lines: Vec<String>,
    },
    /// A process fails again and again: the run stops, unless it can do without the process.
    RoleFailed {
        /// The process's name.
        name: String,
        /// Reason.
        reason: String,
        /// Path of the log.
        log: String,
        /// Last lines of the log.
        last_lines: Vec<String>,
    },
    /// Something went wrong that does not stop the run.
    Warning {
        /// Description.
        text: String,
    },
    /// A setting that run.toml leaves open was chosen by measurement.
    Chosen {
        /// The key.
        key: String,
        /// The chosen value.
        value: String,
        /// Figures that decided.
        reason: String,
        /// True if an earlier start has measured it.
        kept: bool,
    },
    /// The first game of the run is stored.
    FirstGame {
        /// Seconds since `minuet up` was started.
        after_seconds: f64,
    },
    /// A checkpoint was published.
    Checkpoint {
        /// Version.
        version: String,
        /// Training steps; 0 for the network that training begins with.
        step: u64,
        /// Positions trained on, repeats counted.
        positions_seen: u64,
        /// Seconds since `minuet up` was started.
        after_seconds: f64,
    },
    /// The rating found a better checkpoint and moved the label `best`.
    Promoted {
        /// The version.
        version: String,
        /// Training steps.
        step: u64,
        /// Seconds since `minuet up` was started.
        after_seconds: f64,
    },
    /// The inference server answers with a new version.
    Serving {
        /// The version.
        version: String,
        /// Seconds since `minuet up` was started.
        after_seconds: f64,
    },
    /// The run's figures.
    Summary(Box<Summary>),
    /// The run stops.
    Stopping {
        /// Reason.
        reason: String,
    },
    /// A process ended on request.
    RoleStopped {
        /// The process's name.
        name: String,
        /// True if the process did not end in time and was killed.
        killed: bool,
    },
    /// All processes have ended.
    Stopped(StoppedRun),
}

impl Event {
    /// Returns the event of a checkpoint, published `after` the command was started.
    pub fn checkpoint(manifest: &Manifest, after: Duration) -> Self {
        Self::Checkpoint {
            version: manifest.version.to_string(),
            step: manifest.draft.step,
            positions_seen: manifest.draft.positions_seen,
            after_seconds: after.as_secs_f64(),
        }
    }

    /// Returns the event of choices that were made now, or `kept` from an earlier start.
    pub fn chosen(choices: &Choices, kept: bool) -> Self {
        Self::Chosen {
            key: "inference.threads".into(),
            value: choices.threads.to_string(),
            reason: choices.reason.clone(),
            kept,
        }
    }

    /// Returns the reason why the command has to end, if the event is one.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::RoleFailed { name, .. } if !is_needed(name) => None,
            Self::RoleFailed {
                name, reason, log, ..
            } => Some(format!("{name}: {reason}; see {log}")),
            _ => None,
        }
    }
}

/// True if a run ends without this process. A run without its pages or its ratings is still a run.
pub fn is_needed(name: &str) -> bool {
    name != Role::Studio.name() && name != Role::Rating.name()
}

/// A process of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Name.
    pub name: String,
    /// Address of the metrics page; empty: none.
    pub metrics: String,
}

/// State of a run that has stopped; the next start continues from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoppedRun {
    /// The run's folder.
    pub run: String,
    /// Seconds since `minuet up` was started.
    pub after_seconds: f64,
    /// Stored games; `None` if the store did not answer.
    pub games: Option<u64>,
    /// Positions ever stored; `None` if the store did not answer.
    pub positions: Option<u64>,
    /// Version of the newest checkpoint, if there is one.
    pub checkpoint: Option<String>,
    /// Processes that had to be killed.
    pub killed: Vec<String>,
    /// True if the folder is no longer where it was when the run was started.
    pub moved: bool,
}

/// Returns an event as JSON, with the time of day in milliseconds since the Unix epoch, and the lines for people, if there are any, as
/// `text`.
///
/// # Errors
/// None in practice: every field of an event has a JSON form.
pub fn entry(event: &Event, text: Vec<String>) -> serde_json::Result<serde_json::Value> {
    let mut entry = serde_json::to_value(event)?;
    if let Some(fields) = entry.as_object_mut() {
        fields.insert("at_ms".into(), moment::now().into());
        if !text.is_empty() {
            fields.insert("text".into(), text.into());
        }
    }
    Ok(entry)
}
