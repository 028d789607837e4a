//! [`Plan`]: needs of a run, as they are printed, and the table of them for people.

use std::fmt::{self, Write as _};

use launcher::screen::figures::{bytes, count, or_dash, rate};
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

/// Formats a plan as a table. A dash means that a figure is not known.
pub fn text(plan: &Plan) -> String {
    let mut text = format!(
        "{}, network {}, {} positions a day\n\n",
        plan.game,
        plan.network,
        count(plan.positions_per_day as f64)
    );
    let per_second = |value| or_dash(value, |value| format!("{}/s", rate(value)));
    let cores = |value| {
        or_dash(value, |value: f64| match value < 0.01 {
            true => "less than 0.01 cores".into(),
            false => format!("{value:.2} cores"),
        })
    };
    let number = |value| or_dash(value, |value: u64| count(value as f64));
    let flow = |value| or_dash(value, |value: f64| format!("{}/s", bytes(value.round() as u64)));
    let (actors, inference, learner) = (&plan.actors, &plan.inference, &plan.learner);
    let traffic = &plan.bytes_per_second;
    let of = |name: &Option<String>| name.iter().map(|name| format!(" ({name})")).collect::<String>();
    let servers = match inference.gpus {
        Some(gpus) => format!("GPUs: {}, of which {gpus:.2} are busy", number(inference.servers)),
        None => format!("servers of one core: {}", number(inference.servers)),
    };
    let trainers = match learner.gpus {
        Some(gpus) => format!("{gpus:.2} of a GPU"),
        None => cores(learner.cores),
    };
    let disk = |size: f64| format!("{} a day", bytes(size.round() as u64));
    let rows = [
        ("positions", per_second(Some(plan.positions_per_second))),
        ("visits", per_second(plan.visits_per_second)),
        ("evaluations", per_second(plan.evaluations_per_second)),
        ("training samples", per_second(Some(plan.samples_per_second))),
        ("", String::new()),
        (
            "actors",
            format!(
                "{}; games in progress: {}, on threads: {}",
                cores(actors.cores),
                number(actors.games_in_progress),
                number(actors.threads)
            ),
        ),
        (
            "inference",
            format!("{}; {servers}{}", cores(inference.cores), of(&inference.provider)),
        ),
        (
            "replay store",
            format!("{}; stores: {}", cores(plan.replay.cores), plan.replay.stores),
        ),
        ("learner", format!("{trainers}{}", of(&learner.precision))),
        ("all", cores(plan.cores)),
        ("", String::new()),
        ("actors → inference", flow(traffic.actors_to_inference)),
        ("inference → actors", flow(traffic.inference_to_actors)),
        ("actors → replay", flow(traffic.actors_to_replay)),
        ("replay → learner", flow(traffic.replay_to_learner)),
        ("models → inference", flow(traffic.checkpoints_to_inference)),
        ("disk", or_dash(plan.disk_bytes_per_day, disk)),
    ];
    for (what, need) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", format!("{what:<20}{need}").trim_end());
    }
    for limit in &plan.limits {
        let _ = writeln!(text, "\nlimit: {limit}");
    }
    text.push_str("\nfrom figures of\n");
    for source in &plan.sources {
        let _ = writeln!(text, "  {source}");
    }
    if !plan.unknown.is_empty() {
        text.push_str("\nnot known, and the command that measures it\n");
    }
    for unknown in &plan.unknown {
        let _ = writeln!(text, "  {}\n      {}", unknown.figure, unknown.command);
    }
    text
}
