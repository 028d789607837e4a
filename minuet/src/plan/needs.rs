//! [`Demand::plan`]: what a run needs, by measured figures. Pure calculation.
//!
//! Each need is a rate times a cost. With P positions a second:
//!
//! | need | formula |
//! |---|---|
//! | visits a second V | P × visits for each position, of self-play |
//! | evaluations a second E | V × fresh evaluations for each visit, of self-play |
//! | actors, in cores | V × processor time of a visit |
//! | inference, in cores | E ÷ evaluations for each second of the server's processor time |
//! | inference servers | as many as cores; on GPUs E ÷ evaluations a second |
//! | games in progress | servers × evaluations in flight when a server was measured ÷ leaves of a search |
//! | replay store, in cores | P ÷ positions appended for each second of its processor time, and the same for samples |
//! | learner | P × samples for each position ÷ samples a second |
//!
//! The needs are those of full load: nothing is added for failures or peaks.

use launcher::BadUsage;

use super::{
    measured::{Inference, Measured, Origin, Replay, Selfplay, Served, Trained},
    result::{Actors, Learner, Plan, Servers, Source, Store, Traffic, Unknown},
};

const SECONDS_A_DAY: f64 = 86_400.0;

/// Size of a run, and the settings that a plan depends on.
#[derive(Clone, Debug)]
pub struct Demand {
    /// Name of the game.
    pub game: String,
    /// Size of the network, `blocks`x`filters`.
    pub network: String,
    /// Positions that self-play produces in 24 hours.
    pub positions_per_day: u64,
    /// Training samples for each position.
    pub samples_per_position: f64,
    /// Visits of each search.
    pub visits: u32,
    /// Training samples of a step.
    pub batch: usize,
    /// Training steps between two checkpoints.
    pub checkpoint_steps: u64,
}

/// Results of one game and network.
struct Figures<'a> {
    selfplay: Option<&'a Selfplay>,
    inference: Option<&'a Inference>,
    /// Of `inference`: the fastest provider, under the load most like that of `selfplay`.
    served: Option<&'a Served>,
    replay: Option<&'a Replay>,
    /// The fastest precision.
    trained: Option<&'a Trained>,
    /// True if `trained` is of a GPU.
    trained_on_gpu: bool,
}

impl Demand {
    /// Computes what the run needs.
    ///
    /// # Errors
    /// There are no figures of the network at all.
    pub fn plan(&self, measured: &Measured) -> Result<Plan, BadUsage> {
        let (game, network) = (self.game.as_str(), self.network.as_str());
        let selfplay = measured.selfplay(game, network);
        let inference = measured.inference(game, network);
        let replay = measured.replay(game);
        let training = measured.training(game, network);
        if selfplay.is_none() && inference.is_none() && training.is_none() {
            return Err(BadUsage(format!(
                "nothing was measured of a network of {network} (blocks x filters, e.g. 4x64) for {game}; measured are {}; \
                 `minuet plan --help` shows how to measure another one and to give its figures with --measured",
                measured.networks().join(", ")
            )));
        }
        let rows = selfplay.map(|(_, found)| found.rows_per_request);
        let fastest = |one: &&Trained, other: &&Trained| one.samples.total_cmp(&other.samples);
        let figures = Figures {
            selfplay: selfplay.map(|(_, found)| found),
            inference: inference.map(|(_, found)| found),
            served: inference.and_then(|(_, found)| fastest_server(&found.figures, network, rows)),
            replay: replay.map(|(_, found)| found),
            trained: training.and_then(|(_, found)| found.figures.iter().max_by(fastest)),
            trained_on_gpu: training.is_some_and(|(_, found)| is_gpu(&found.device)),
        };
        let origins = [
            ("selfplay", selfplay.map(|(origin, _)| origin)),
            ("inference", inference.map(|(origin, _)| origin)),
            ("replay", replay.map(|(origin, _)| origin)),
            ("training", training.map(|(origin, _)| origin)),
        ];
        let source = |(bench, origin): (_, Option<&Origin>)| {
            let origin = origin?.clone();
            Some(Source { bench, origin })
        };
        Ok(Plan {
            sources: origins.into_iter().filter_map(source).collect(),
            ..self.needs(&figures)
        })
    }

    /// Multiplies rates by costs.
    fn needs(&self, figures: &Figures<'_>) -> Plan {
        let positions = self.positions_per_day as f64 / SECONDS_A_DAY;
        let samples = positions * self.samples_per_position;
        let play = figures.selfplay;
        let visits = play.map(|found| positions * found.visits_per_second / found.positions_per_second);
        let evaluations =
            play.map(|found| positions * found.fresh_evaluations_per_second / found.positions_per_second);
        let inference = figures.servers(evaluations);
        let actors = figures.actors(visits, evaluations);
        let replay = Store {
            stores: 1,
            cores: figures.replay.map(|found| {
                positions / found.appended.per_cpu_second + samples / found.sampled.per_cpu_second
            }),
        };
        let learner = figures.learner(samples);
        let learner_cores = learner.cores.or(learner.gpus.map(|_| 0.0));
        let cores = [actors.cores, inference.cores, replay.cores, learner_cores];
        let checkpoints = samples / self.batch as f64 / self.checkpoint_steps as f64;
        let fetched = inference.servers.map(|servers| servers as f64 * checkpoints);
        let model_bytes = figures.served.and_then(|found| found.model_bytes);
        let batch_bytes = figures.replay.and_then(|found| found.batch_bytes);
        let bytes = figures.inference;
        let stored = figures.replay;
        Plan {
            game: self.game.clone(),
            network: self.network.clone(),
            positions_per_day: self.positions_per_day,
            positions_per_second: positions,
            visits_per_second: visits,
            evaluations_per_second: evaluations,
            samples_per_second: samples,
            cores: cores.into_iter().sum(),
            bytes_per_second: Traffic {
                actors_to_inference: product(
                    evaluations,
                    bytes.map(|found| found.request_bytes_per_position),
                ),
                inference_to_actors: product(evaluations, bytes.map(|found| found.reply_bytes_per_position)),
                actors_to_replay: stored.map(|found| positions * found.message_bytes),
                replay_to_learner: batch_bytes.map(|bytes| samples * bytes),
                checkpoints_to_inference: product(fetched, model_bytes),
            },
            disk_bytes_per_day: stored.map(|found| self.positions_per_day as f64 * found.disk_bytes),
            limits: limits(&replay, &learner),
            sources: Vec::new(),
            unknown: self.unknown(figures),
            actors,
            inference,
            replay,
            learner,
        }
    }

    /// Lists the figures that are missing, each with the command that measures it.
    fn unknown(&self, figures: &Figures<'_>) -> Vec<Unknown> {
        let (game, network) = (&self.game, &self.network);
        let (blocks, filters) = network.split_once('x').unwrap_or((network, ""));
        let inference = format!("inference --game {game} --networks {network} --overload 0");
        let replay = format!("replay --game {game}");
        let size = format!("--game {game} --blocks {blocks} --filters {filters}");
        let mut unknown = Vec::new();
        let mut list = |is_missing: bool, figure, bench: String| {
            if is_missing {
                let command = format!("minuet bench {bench} --json");
                unknown.push(Unknown { figure, command });
            }
        };
        list(
            figures.selfplay.is_none(),
            "visits and evaluations of a position, processor time of a visit",
            format!("selfplay {size} --visits {}", self.visits),
        );
        match figures.served {
            None => list(true, "evaluations a second, bytes of an evaluation", inference),
            Some(found) => list(found.model_bytes.is_none(), "bytes of a model", inference),
        }
        match figures.replay {
            None => list(
                true,
                "positions a second of the replay store, bytes of a position",
                replay,
            ),
            Some(found) => list(found.batch_bytes.is_none(), "bytes of a sample", replay),
        }
        list(
            figures.trained.is_none(),
            "samples a second of the learner",
            format!("training {size} --batch {}", self.batch),
        );
        unknown
    }
}

impl Figures<'_> {
    /// Servers at full load, of one core or one GPU each.
    fn busy_servers(&self, evaluations: Option<f64>) -> Option<f64> {
        Some(evaluations? / self.served?.capacity())
    }

    fn servers(&self, evaluations: Option<f64>) -> Servers {
        let busy = self.busy_servers(evaluations);
        Servers {
            provider: self.served.map(|found| found.provider.clone()),
            servers: busy.map(|busy| busy.ceil() as u64),
            cores: evaluations
                .zip(self.served)
                .map(|(rate, found)| rate / found.served_per_cpu_second),
            gpus: busy.filter(|_| self.served.is_some_and(|found| is_gpu(&found.provider))),
        }
    }

    /// Games that keep the servers at work, and threads that hold as many games as in the measured self-play.
    fn actors(&self, visits: Option<f64>, evaluations: Option<f64>) -> Actors {
        let cores = visits
            .zip(self.selfplay)
            .map(|(visits, found)| visits * found.actor_us_per_visit * 1e-6);
        let games = || {
            let (load, found) = (self.served?.load, self.selfplay?);
            let in_flight = f64::from(load.streams) * f64::from(load.rows);
            Some((self.busy_servers(evaluations)?.ceil() * in_flight / f64::from(found.leaves)).ceil())
        };
        let games = games();
        let threads = || {
            let found = self.selfplay?;
            let on_a_thread = found.games_in_progress as f64 / found.actor_threads as f64;
            Some(cores?.max(games? / on_a_thread).ceil() as u64)
        };
        Actors {
            cores,
            threads: threads(),
            games_in_progress: games.map(|games| games as u64),
        }
    }

    fn learner(&self, samples: f64) -> Learner {
        let rate = |found: &Trained| {
            if self.trained_on_gpu {
                found.samples
            } else {
                found.samples_per_cpu_second
            }
        };
        let share = self.trained.map(|found| samples / rate(found));
        Learner {
            precision: self.trained.map(|found| found.precision.clone()),
            share,
            cores: share.filter(|_| !self.trained_on_gpu),
            gpus: share.filter(|_| self.trained_on_gpu),
        }
    }
}

impl Served {
    /// Evaluations a second of one server on one core, or on one GPU. On cores the processor time counts, because other
    /// work disturbs the clock more.
    fn capacity(&self) -> f64 {
        if is_gpu(&self.provider) {
            self.served
        } else {
            self.served_per_cpu_second
        }
    }
}

fn product(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? * other?)
}

/// Sentences about roles of which a run has one, where one core or one GPU is not enough.
fn limits(replay: &Store, learner: &Learner) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(cores) = replay.cores.filter(|cores| *cores > 1.0) {
        limits.push(format!(
            "a run has one replay store, and this one needs {cores:.1} cores; its speed on several was not measured"
        ));
    }
    if let Some(share) = learner.share.filter(|share| *share > 1.0) {
        let device = if learner.gpus.is_some() { "GPUs" } else { "cores" };
        limits.push(format!(
            "a run has one learner, and this one needs {share:.1} {device}; its speed on several was not measured"
        ));
    }
    limits
}

/// Returns the figures of the fastest provider of a network, under the load whose requests are most like those of `rows`
/// positions.
fn fastest_server<'a>(figures: &'a [Served], network: &str, rows: Option<f64>) -> Option<&'a Served> {
    let of_network = || figures.iter().filter(|found| found.network == network);
    let fastest = of_network().max_by(|one, other| one.capacity().total_cmp(&other.capacity()))?;
    let Some(rows) = rows else {
        return Some(fastest);
    };
    let distance = |found: &Served| (f64::from(found.load.rows) / rows).ln().abs();
    of_network()
        .filter(|found| found.provider == fastest.provider)
        .min_by(|one, other| distance(one).total_cmp(&distance(other)))
}

/// True for the name of a provider or a device that is a GPU.
fn is_gpu(name: &str) -> bool {
    let mut gpus = config::Provider::each().filter(|provider| provider.is_gpu());
    gpus.any(|provider| name.starts_with(provider.name()))
}
