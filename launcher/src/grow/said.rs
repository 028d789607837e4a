//! What `minuet grow` tells: lines for people, one JSON object a line with `--json`. Fields are added, never renamed.

use std::{
    io::{self, Write as _},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Said {
    /// A larger network is trained.
    Growing {
        /// The run's folder.
        run: String,
        /// What it has of its own.
        set: Vec<String>,
        /// It goes on from an earlier start.
        resumed: bool,
        /// The run is at work: its own replay store is asked.
        beside: bool,
    },
    /// It has published a checkpoint.
    Checkpoint {
        /// The version, in its own store.
        version: String,
        /// Its training steps.
        step: u64,
    },
    /// A match has begun.
    Playing {
        /// Its checkpoint.
        candidate: String,
        /// The run's newest checkpoint.
        opponent: String,
    },
    /// A match is over.
    Played {
        /// Its checkpoint.
        candidate: String,
        /// The run's checkpoint.
        opponent: String,
        /// `good-enough`, `too-weak` or `undecided`.
        verdict: &'static str,
        /// Games.
        games: u64,
        /// Elo above the run's; null where it has no bound.
        elo: Option<f64>,
        /// Ends of its 95 % interval.
        elo_interval: [Option<f64>; 2],
    },
    /// One of its processes ended, and is started again.
    Exited {
        /// Which.
        name: String,
        /// How it ended.
        status: String,
    },
    /// The run has the larger network now.
    TakenOver {
        /// The run's newest checkpoint.
        version: String,
        /// Training steps that it counts.
        step: Option<u64>,
        /// What was the newest before.
        instead_of: Option<String>,
    },
    /// It stops, and can be gone on with.
    Stopped {
        /// Why.
        reason: String,
    },
    /// Everything of it was thrown away.
    Aborted {
        /// There was something.
        found: bool,
    },
}

impl Said {
    /// Tells it.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn print(&self, json: bool) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if json {
            #[derive(Serialize)]
            struct Line<'a> {
                at_ms: u64,
                #[serde(flatten)]
                said: &'a Said,
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let line = Line {
                at_ms: now.as_millis() as u64,
                said: self,
            };
            writeln!(stdout, "{}", serde_json::to_string(&line)?)?;
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
                let begins = if *resumed {
                    "goes on growing"
                } else {
                    "begins to grow"
                };
                let place = if *beside {
                    "beside the run, which is at work"
                } else {
                    "on the stored games; the run is not at work"
                };
                format!(
                    "{run}: a network with {} {begins} {place}. Ctrl-C stops it, the same command goes on",
                    set.join(", ")
                )
            }
            Self::Checkpoint { version, step } => format!("checkpoint {version}: {step} steps"),
            Self::Playing { candidate, opponent } => format!("{candidate} plays {opponent}"),
            Self::Played {
                verdict, games, elo, ..
            } => {
                let elo = elo.map_or("no bound".into(), |elo| format!("{elo:+.0} Elo"));
                let means = match *verdict {
                    "good-enough" => "it is as good",
                    "too-weak" => "not yet as good; it trains on",
                    _ => "nobody knows yet; it trains on",
                };
                format!("{games} games, {elo}: {means}")
            }
            Self::Exited { name, status } => format!("{name} ended ({status}) and is started again"),
            Self::TakenOver { version, .. } => format!(
                "the run has the larger network now: {version}; its learner goes on from there, `minuet up` as well"
            ),
            Self::Stopped { reason } => format!("{reason}: stopped; the same command goes on from here"),
            Self::Aborted { found: true } => "what had grown was thrown away; the run is as it was".into(),
            Self::Aborted { found: false } => "nothing grows here".into(),
        }
    }
}
