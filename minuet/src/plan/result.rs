//! [`Plan`]: needs of a run, as they are printed.

use std::fmt;

use serde::Serialize;

use super::measured::Origin;

/// Needs of a run. `None` is what the measured figures do not say; [`Plan::unknown`] says how to measure it.
#[derive(Debug, Serialize)]
pub struct Plan {
    pub game: String,
    pub network: String,
    pub positions_per_day: u64,
    pub positions_per_second: f64,
    pub visits_per_second: Option<f64>,
    pub evaluations_per_second: Option<f64>,
    pub samples_per_second: f64,
    pub actors: Actors,
    pub inference: Servers,
    pub replay: Store,
    pub learner: Learner,
    /// Sum of the cores of all roles.
    pub cores: Option<f64>,
    pub bytes_per_second: Traffic,
    /// Bytes of games that the replay store writes to its disk in 24 hours.
    pub disk_bytes_per_day: Option<f64>,
    /// Sentences about what one store or one learner cannot do.
    pub limits: Vec<String>,
    /// Results that the plan was computed from.
    pub sources: Vec<Source>,
    /// Figures that were not measured.
    pub unknown: Vec<Unknown>,
}

/// Self-play.
#[derive(Debug, Serialize)]
pub struct Actors {
    /// Processor time, in cores.
    pub cores: Option<f64>,
    /// Worker threads that hold the games; each needs at most one core.
    pub threads: Option<u64>,
    /// Games in progress at the same time, so that the inference servers have work.
    pub games_in_progress: Option<u64>,
}

/// Inference servers.
#[derive(Debug, Serialize)]
pub struct Servers {
    /// Execution provider: the fastest one that was measured.
    pub provider: Option<String>,
    /// Servers of one core each, or of one GPU each.
    pub servers: Option<u64>,
    /// Processor time of all servers, in cores.
    pub cores: Option<f64>,
    /// GPUs at full load; `None` where the provider computes on cores.
    pub gpus: Option<f64>,
}

/// The replay store.
#[derive(Debug, Serialize)]
pub struct Store {
    /// Stores of a run: always 1.
    pub stores: u64,
    /// Processor time, in cores.
    pub cores: Option<f64>,
}

/// The learner.
#[derive(Debug, Serialize)]
pub struct Learner {
    /// Precision: the fastest one that was measured.
    pub precision: Option<String>,
    /// Share of the device that is busy, a core or a GPU; above 1 if one is not enough.
    pub share: Option<f64>,
    /// Processor time, in cores; `None` on a GPU.
    pub cores: Option<f64>,
    /// GPUs at full load; `None` on cores.
    pub gpus: Option<f64>,
}

/// Bytes a second between roles, with the framing of gRPC only where the figure has it.
#[derive(Debug, Serialize)]
pub struct Traffic {
    /// Rows, framing included.
    pub actors_to_inference: Option<f64>,
    /// Evaluations, framing included.
    pub inference_to_actors: Option<f64>,
    /// Finished games.
    pub actors_to_replay: Option<f64>,
    /// Batches of samples.
    pub replay_to_learner: Option<f64>,
    /// Models of new checkpoints, to all servers together.
    pub checkpoints_to_inference: Option<f64>,
}

/// Origin of figures.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// Name of the benchmark.
    pub bench: &'static str,
    #[serde(flatten)]
    pub origin: Origin,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin {
            machine,
            command,
            commit,
        } = &self.origin;
        let bench = self.bench;
        let machine = machine.as_deref().unwrap_or("a machine without a name");
        let commit = commit.as_deref().unwrap_or("no commit");
        write!(formatter, "{bench:<10} {machine}, {commit}: ")?;
        match command {
            Some(command) => formatter.write_str(command),
            None => write!(formatter, "minuet bench {bench}"),
        }
    }
}

/// A figure that was not measured.
#[derive(Debug, PartialEq, Serialize)]
pub struct Unknown {
    pub figure: &'static str,
    /// Command that measures it.
    pub command: String,
}
