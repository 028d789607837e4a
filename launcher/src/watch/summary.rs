//! [`Summary`]: the run's figures at one moment, by stage in the order of a position's journey.

use config::RunConfig;
use serde::{Deserialize, Serialize};
use service::role::Role;

use super::{
    disks::Disk,
    history::History,
    names,
    observe::Observation,
    problems::{self, Problems},
};
use crate::page::Page;

/// The run's figures. Unknown figures are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Seconds since `minuet up` was started.
    pub after_seconds: f64,
    /// Self-play.
    pub actor: Actor,
    /// Progress with each kind of problem. Empty in games that are not about problems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problems>,
    /// Evaluation.
    pub inference: Inference,
    /// The stored games.
    pub replay: Replay,
    /// Disks of the run besides that of the stored games. Empty if the run is on one disk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// Training.
    pub learner: Learner,
    /// The newest checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// Strength of the checkpoints; absent if the run has no rating role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<Rating>,
    /// The processes.
    pub processes: Vec<Process>,
    /// Resident memory of all processes together, in bytes.
    pub memory_bytes: u64,
    /// Sentence that names the stage that limits the run now.
    pub limit: String,
}

/// Self-play, over all actors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Actor {
    /// Visits of search trees, in all.
    pub visits_per_second: Option<f64>,
    /// Visits evaluated by the network.
    pub fresh_evaluations_per_second: Option<f64>,
    /// Share of the evaluations that came from the cache.
    pub cache_hit_ratio: Option<f64>,
    /// Share of the worker threads' time in which they had work.
    pub busy_ratio: Option<f64>,
    /// Finished games that the store has not acknowledged yet.
    pub spooled_games: Option<u64>,
    /// True if self-play is paused because there is no space for finished games.
    pub paused: bool,
    /// True if the run has no actors (`minuet up --actors 0`).
    pub off: bool,
}

/// The inference server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inference {
    /// Positions evaluated.
    pub positions_per_second: Option<f64>,
    /// Positions in a batch, on average.
    pub batch_size: Option<f64>,
    /// Share of the largest batch that an average batch fills.
    pub batch_fill_ratio: Option<f64>,
    /// Average time that a request waits for the device, in seconds.
    pub queue_seconds: Option<f64>,
    /// Share of the time in which a device computes, on average over the servers.
    pub busy_ratio: Option<f64>,
    /// Version of the model that serves the actors.
    pub version: Option<String>,
    /// Execution provider of the model.
    pub provider: Option<String>,
    /// Reason why the server refuses the newest checkpoint. An older one is served meanwhile, or none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_refused: Option<String>,
}

/// The replay store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Replay {
    /// Stored games.
    pub games: Option<u64>,
    /// Games ever stored.
    pub games_inserted: Option<u64>,
    /// Positions in the window, from which samples are drawn.
    pub window_positions: Option<u64>,
    /// Positions ever stored.
    pub positions_inserted: Option<u64>,
    /// Games stored in an hour, at the rate since `minuet up` was started.
    pub games_per_hour: Option<f64>,
    /// Positions stored in a second, at the rate since `minuet up` was started.
    pub positions_per_second: Option<f64>,
    /// Bytes on disk.
    pub disk_bytes: Option<u64>,
    /// Free bytes of the disk.
    pub free_bytes: Option<u64>,
}

/// The learner.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Learner {
    /// Training steps done.
    pub step: Option<u64>,
    /// Steps in a second.
    pub steps_per_second: Option<f64>,
    /// Loss of the policy head.
    pub policy_loss: Option<f64>,
    /// Loss of the value head.
    pub value_loss: Option<f64>,
    /// Samples trained on for each position inserted.
    pub samples_per_position: Option<f64>,
    /// True while the learner waits for positions.
    pub waiting: bool,
}

/// The newest checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checkpoint {
    /// Version.
    pub version: String,
    /// Training steps of the checkpoint.
    pub step: u64,
    /// Seconds since the checkpoint was published.
    pub age_seconds: f64,
}

/// Strength of the checkpoints, in Elo above the first one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rating {
    /// The best checkpoint.
    pub best: Option<Elo>,
    /// The newest checkpoint that was rated or is being rated.
    pub latest: Option<Elo>,
    /// Games played since the role was started.
    pub games: Option<u64>,
}

/// Rating of one checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elo {
    /// Training steps of the checkpoint.
    pub step: u64,
    /// Elo above the first checkpoint.
    pub elo: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

/// A process of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Name.
    pub name: String,
    /// Process number, while the process runs.
    pub pid: Option<u32>,
    /// True if the process answers and, if it is a server, reports SERVING.
    pub ready: bool,
    /// Resident memory.
    pub memory_bytes: Option<u64>,
    /// Average number of cores in use.
    pub cores: Option<f64>,
}

/// The store's counts at its first answer to this `minuet up`.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Seconds since `minuet up` was started.
    pub after_seconds: f64,
    /// Games ever stored.
    pub games: u64,
    /// Positions ever stored.
    pub positions: u64,
}

impl Summary {
    /// Returns the figures at `observation`, the last one of `history`. The field `limit` is empty; see [`super::limit`].
    pub fn new(
        after_seconds: f64,
        observation: &Observation,
        history: &History,
        beginning: Option<Beginning>,
        checkpoint: Option<Checkpoint>,
        config: &RunConfig,
    ) -> Self {
        let mut summary = Self {
            after_seconds,
            actor: actor(observation, history),
            problems: problems::problems(observation),
            inference: inference(observation, history, config),
            replay: replay(after_seconds, observation, beginning),
            disks: observation.disks.clone(),
            learner: learner(observation, history),
            checkpoint,
            rating: rating(observation),
            processes: processes(observation, history),
            memory_bytes: 0,
            limit: String::new(),
        };
        let roles = summary
            .processes
            .iter()
            .filter_map(|process| process.memory_bytes);
        summary.memory_bytes = roles.sum::<u64>() + observation.own_usage.map_or(0, |own| own.resident_bytes);
        summary
    }
}

fn actor(observation: &Observation, history: &History) -> Actor {
    let rate = |counter| history.rate(Role::Actor, counter);
    let share = |part: Option<f64>, rest: Option<f64>| {
        let (part, rest) = (part?, rest?);
        (part + rest > 0.0).then(|| part / (part + rest))
    };
    Actor {
        visits_per_second: rate(names::VISITS),
        fresh_evaluations_per_second: rate(names::FRESH),
        cache_hit_ratio: share(rate(names::CACHE_HITS), rate(names::FRESH)),
        busy_ratio: share(rate(names::WORKER_BUSY), rate(names::WORKER_WAITING)),
        spooled_games: observation
            .sum(Role::Actor, names::SPOOL_GAMES)
            .map(|games| games as u64),
        paused: observation
            .sum(Role::Actor, names::ACTOR_PAUSED)
            .is_some_and(|paused| paused > 0.0),
        off: !observation.processes.is_empty()
            && observation
                .processes
                .values()
                .all(|process| process.role != Role::Actor),
    }
}

fn inference(observation: &Observation, history: &History, config: &RunConfig) -> Inference {
    let role = Role::InferenceServer;
    let batch_size = history.per(role, names::BATCH_POSITIONS, names::BATCHES);
    Inference {
        positions_per_second: history.rate(role, names::EVALUATED),
        batch_size,
        batch_fill_ratio: batch_size.map(|size| size / config.inference.largest_batch() as f64),
        queue_seconds: history.per(role, names::QUEUE_SECONDS_SUM, names::QUEUE_SECONDS_COUNT),
        busy_ratio: history
            .rate(role, names::DEVICE_BUSY)
            .map(|ratio| (ratio / observation.pages(role).count().max(1) as f64).min(1.0)),
        version: observation.model.as_ref().map(|model| model.version.clone()),
        provider: observation.model.as_ref().map(|model| model.provider.clone()),
        newest_refused: newest_refused(observation),
    }
}

/// Reads why the newest checkpoint is refused. A server that has no model to describe says so on its metrics page alone.
fn newest_refused(observation: &Observation) -> Option<String> {
    let described = observation
        .model
        .as_ref()
        .map(|model| model.newest_refused.clone());
    let is_refused = observation.sum(Role::InferenceServer, names::NEWEST_REFUSED)? > 0.0;
    let reason = described.filter(|reason| !reason.is_empty());
    is_refused.then(|| reason.unwrap_or_else(|| "logs/inference-server.log says why".into()))
}

fn replay(after_seconds: f64, observation: &Observation, beginning: Option<Beginning>) -> Replay {
    let free_bytes = observation.free_bytes;
    let Some(stats) = &observation.stats else {
        return Replay {
            free_bytes,
            ..Replay::default()
        };
    };
    let rate = |now: u64, then: fn(&Beginning) -> u64| {
        let beginning = beginning?;
        let seconds = after_seconds - beginning.after_seconds;
        (seconds > 0.0).then(|| now.saturating_sub(then(&beginning)) as f64 / seconds)
    };
    Replay {
        games: Some(stats.games),
        games_inserted: Some(stats.games_inserted),
        window_positions: Some(stats.window_positions),
        positions_inserted: Some(stats.positions_inserted),
        games_per_hour: rate(stats.games_inserted, |then| then.games).map(|rate| rate * 3600.0),
        positions_per_second: rate(stats.positions_inserted, |then| then.positions),
        disk_bytes: Some(stats.disk_bytes),
        free_bytes,
    }
}

fn learner(observation: &Observation, history: &History) -> Learner {
    let sum = |metric| observation.sum(Role::Learner, metric);
    let page = observation.pages(Role::Learner).next();
    let loss = |head| page.and_then(|page| page.sum_with(names::LOSS, "head", head));
    Learner {
        step: sum(names::STEP).map(|step| step as u64),
        steps_per_second: history.rate(Role::Learner, names::STEPS),
        policy_loss: loss("policy"),
        value_loss: loss("value"),
        samples_per_position: sum(names::SAMPLES_PER_POSITION),
        waiting: sum(names::LEARNER_WAITING).is_some_and(|waiting| waiting > 0.0),
    }
}

fn processes(observation: &Observation, history: &History) -> Vec<Process> {
    let processes = observation.processes.iter();
    processes
        .map(|(name, process)| Process {
            name: name.clone(),
            pid: process.pid,
            ready: process.ready,
            memory_bytes: process.usage.map(|usage| usage.resident_bytes),
            cores: history.cores(name),
        })
        .collect()
}

/// Reads the figures from the rating's metrics page; `None` if the run has no rating role.
fn rating(observation: &Observation) -> Option<Rating> {
    let mut processes = observation.processes.values();
    processes.find(|process| process.role == Role::Rating)?;
    let page = observation.pages(Role::Rating).next();
    Some(Rating {
        best: page.and_then(|page| elo(page, "best")),
        latest: page.and_then(|page| elo(page, "latest")),
        games: page
            .and_then(|page| page.sum(names::RATING_GAMES))
            .map(|games| games as u64),
    })
}

fn elo(page: &Page, whose: &str) -> Option<Elo> {
    let of = |name| {
        page.sum_with(name, "checkpoint", whose)
            // A checkpoint without games has no rating.
            .filter(|value| value.is_finite())
    };
    Some(Elo {
        step: of(names::RATING_STEP)? as u64,
        elo: of(names::RATING_ELO)?,
        low: of(names::RATING_ELO_LOW)?,
        high: of(names::RATING_ELO_HIGH)?,
    })
}
