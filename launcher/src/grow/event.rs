//! Events of `minuet grow`: a line of text each, or with `--json` one JSON object a line. Fields are added, never renamed.

use std::io::{self, Write as _};

use serde::Serialize;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum GrowEvent {
    /// Training of the larger network begins or goes on.
    Growing {
        /// The run's folder.
        run: String,
        /// Settings in which the larger network differs from the run.
        set: Vec<String>,
        /// True if training goes on from an earlier start.
        resumed: bool,
        /// True if `minuet up` is at work, so that its replay store is used.
        beside: bool,
    },
    /// The larger network has a new checkpoint.
    Checkpoint {
        /// Version.
        version: String,
        /// Training steps.
        step: u64,
    },
    /// A match has begun.
    Playing {
        /// Checkpoint of the larger network.
        candidate: String,
        /// Newest checkpoint of the run.
        opponent: String,
    },
    /// A match has ended.
    Played {
        /// Checkpoint of the larger network.
        candidate: String,
        /// Checkpoint of the run.
        opponent: String,
        /// `good-enough`, `too-weak` or `undecided`.
        verdict: &'static str,
        /// Number of games.
        games: u64,
        /// Elo of the larger network above the run's; null if unbounded.
        elo: Option<f64>,
        /// Ends of the 95 % interval, each null if unbounded.
        elo_interval: [Option<f64>; 2],
    },
    /// A process ended and is started again.
    Exited {
        /// Name of the process.
        name: String,
        /// Exit status or signal.
        status: String,
    },
    /// The run goes on with the larger network.
    TakenOver {
        /// Newest checkpoint of the run.
        version: String,
        /// Training steps that the run counts.
        step: Option<u64>,
        /// Newest checkpoint before; null if an interrupted takeover was completed.
        instead_of: Option<String>,
    },
    /// The command ends and can be started again.
    Stopped {
        /// Reason.
        reason: String,
    },
    /// The larger network was deleted.
    Aborted {
        /// False if there was none.
        found: bool,
    },
}

impl GrowEvent {
    /// Prints the event.
    ///
    /// # Errors
    /// Standard output is closed.
    pub fn print(&self, json: bool) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if json {
            writeln!(stdout, "{}", crate::event::line(self)?)?;
        } else {
            writeln!(stdout, "{}", self.text())?;
        }
        stdout.flush()
    }

    fn text(&self) -> String {
        match self {
            Self::Growing {
                run,
                set,
                resumed,
                beside,
            } => {
                let begins = if *resumed { "Continues" } else { "Begins" };
                let place = if *beside {
                    "beside the running `minuet up`"
                } else {
                    "on the stored games"
                };
                let set = set.join(", ");
                format!(
                    "{begins} to train a network with {set} for {run}, {place}. Ctrl-C stops; the same command continues."
                )
            }
            Self::Checkpoint { version, step } => format!("checkpoint {version} ({step} steps)"),
            Self::Playing { candidate, opponent } => format!("match: {candidate} against {opponent}"),
            Self::Played {
                verdict, games, elo, ..
            } => {
                let elo = elo.map_or("no estimate".into(), |elo| format!("{elo:+.0} Elo"));
                let meaning = match *verdict {
                    "good-enough" => "the larger network is as good",
                    "too-weak" => "the larger network is still weaker; training continues",
                    _ => "no decision; training continues",
                };
                format!("{games} games, {elo}: {meaning}")
            }
            Self::Exited { name, status } => format!("{name} ended ({status}) and is started again"),
            Self::TakenOver { version, .. } => {
                format!(
                    "The run now has the larger network, checkpoint {version}. Its learner continues from there."
                )
            }
            Self::Stopped { reason } => format!("Stopped: {reason}. The same command continues."),
            Self::Aborted { found: true } => "Deleted the larger network. The run is unchanged.".into(),
            Self::Aborted { found: false } => "There is no larger network in training.".into(),
        }
    }
}
