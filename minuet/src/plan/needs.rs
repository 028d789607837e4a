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
use serde_json::{Value, json};

use super::measured::{Inference, Measured, Replay, Selfplay, Served, Trained};

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
#[derive(Clone, Copy)]
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
    /// Computes what the run needs, as one object. `null` is what the measured figures do not say; `unknown` lists how to measure it.
    ///
    /// | key | meaning |
    /// |---|---|
    /// | `…_per_second` | rates of the whole run |
    /// | `cores` | processor time of a role, or of all roles; of the learner `null` on a GPU |
    /// | `gpus` | GPUs at full load; `null` where cores compute |
    /// | `actors.threads` | worker threads that hold the games; each needs at most one core |
    /// | `actors.games_in_progress` | games at the same time, so that the inference servers have work |
    /// | `inference.provider` | the fastest execution provider that was measured |
    /// | `inference.servers` | servers of one core each, or of one GPU each |
    /// | `learner.precision` | the fastest precision that was measured |
    /// | `learner.share` | busy share of the device, a core or a GPU; above 1 if one is not enough |
    /// | `bytes_per_second` | traffic between roles, with the framing of gRPC only where the figure has it |
    /// | `disk_bytes_per_day` | bytes of games that the replay store writes in 24 hours |
    /// | `limits` | sentences about what one store or one learner cannot do |
    /// | `sources` | results that the plan was computed from |
    ///
    /// # Errors
    /// There are no figures of the network at all.
    pub fn plan(&self, measured: &Measured) -> Result<Value, BadUsage> {
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
        let mut plan = self.needs(figures);
        plan["sources"] = origins
            .into_iter()
            .filter_map(|(bench, origin)| {
                let mut source = json!(origin?);
                source["bench"] = bench.into();
                Some(source)
            })
            .collect();
        Ok(plan)
    }

    /// Multiplies rates by costs.
    fn needs(&self, figures: Figures<'_>) -> Value {
        let Figures {
            selfplay,
            inference,
            served,
            replay,
            trained,
            trained_on_gpu,
        } = figures;
        let positions = self.positions_per_day as f64 / SECONDS_A_DAY;
        let samples = positions * self.samples_per_position;
        let visits = selfplay.map(|found| positions * found.visits_per_second / found.positions_per_second);
        let evaluations =
            selfplay.map(|found| positions * found.fresh_evaluations_per_second / found.positions_per_second);

        // Servers at full load, of one core or one GPU each.
        let busy = quotient(evaluations, served.map(Served::capacity));
        let servers = busy.map(f64::ceil);
        let server_cores = quotient(evaluations, served.map(|found| found.served_per_cpu_second));

        // Games that keep the servers at work, and threads that hold as many games as in the measured self-play.
        let actor_cores = product(visits, selfplay.map(|found| found.actor_us_per_visit * 1e-6));
        let in_flight = served.map(|found| f64::from(found.load.streams) * f64::from(found.load.rows));
        let leaves = selfplay.map(|found| f64::from(found.leaves));
        let games = quotient(product(servers, in_flight), leaves).map(f64::ceil);
        let on_a_thread = selfplay.map(|found| found.games_in_progress as f64 / found.actor_threads as f64);
        let threads = quotient(games, on_a_thread).zip(actor_cores);
        let threads = threads.map(|(threads, cores)| threads.max(cores).ceil());

        let replay_cores = replay
            .map(|found| positions / found.appended.per_cpu_second + samples / found.sampled.per_cpu_second);
        let share = trained.map(|found| match trained_on_gpu {
            true => samples / found.samples,
            false => samples / found.samples_per_cpu_second,
        });
        let learner_cores = share.filter(|_| !trained_on_gpu);
        let all_cores = [
            actor_cores,
            server_cores,
            replay_cores,
            share.map(|share| if trained_on_gpu { 0.0 } else { share }),
        ];
        let checkpoints = samples / self.batch as f64 / self.checkpoint_steps as f64;
        let fetched = servers.map(|servers| servers * checkpoints);
        let whole = |number: Option<f64>| number.map(|number| number as u64);
        json!({
            "game": self.game,
            "network": self.network,
            "positions_per_day": self.positions_per_day,
            "positions_per_second": positions,
            "visits_per_second": visits,
            "evaluations_per_second": evaluations,
            "samples_per_second": samples,
            "actors": {
                "cores": actor_cores,
                "threads": whole(threads),
                "games_in_progress": whole(games),
            },
            "inference": {
                "provider": served.map(|found| &found.provider),
                "servers": whole(servers),
                "cores": server_cores,
                "gpus": busy.filter(|_| served.is_some_and(|found| is_gpu(&found.provider))),
            },
            "replay": { "stores": 1, "cores": replay_cores },
            "learner": {
                "precision": trained.map(|found| &found.precision),
                "share": share,
                "cores": learner_cores,
                "gpus": share.filter(|_| trained_on_gpu),
            },
            "cores": all_cores.into_iter().sum::<Option<f64>>(),
            "bytes_per_second": {
                "actors_to_inference": product(evaluations, inference.map(|found| found.request_bytes_per_position)),
                "inference_to_actors": product(evaluations, inference.map(|found| found.reply_bytes_per_position)),
                "actors_to_replay": replay.map(|found| positions * found.message_bytes),
                "replay_to_learner": replay.and_then(|found| Some(samples * found.batch_bytes?)),
                "checkpoints_to_inference": product(fetched, served.and_then(|found| found.model_bytes)),
            },
            "disk_bytes_per_day": replay.map(|found| self.positions_per_day as f64 * found.disk_bytes),
            "limits": limits(replay_cores, share, trained_on_gpu),
            "unknown": self.unknown(figures),
        })
    }

    /// Lists the figures that are missing, each with the command that measures it.
    fn unknown(&self, figures: Figures<'_>) -> Vec<Value> {
        let (game, network) = (&self.game, &self.network);
        let (blocks, filters) = network.split_once('x').unwrap_or((network, ""));
        let inference = format!("inference --game {game} --networks {network} --overload 0");
        let replay = format!("replay --game {game}");
        let size = format!("--game {game} --blocks {blocks} --filters {filters}");
        let mut unknown = Vec::new();
        let mut list = |is_missing: bool, figure: &str, bench: String| {
            if is_missing {
                let command = format!("minuet bench {bench} --json");
                unknown.push(json!({ "figure": figure, "command": command }));
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

fn quotient(rate: Option<f64>, capacity: Option<f64>) -> Option<f64> {
    Some(rate? / capacity?)
}

/// Sentences about roles of which a run has one, where one core or one GPU is not enough.
fn limits(store: Option<f64>, learner: Option<f64>, on_gpu: bool) -> Vec<String> {
    let roles = [
        ("replay store", store, "cores"),
        ("learner", learner, if on_gpu { "GPUs" } else { "cores" }),
    ];
    let limits = roles.into_iter().filter_map(|(role, need, device)| {
        let need = need.filter(|&need| need > 1.0)?;
        Some(format!(
            "a run has one {role}, and this one needs {need:.1} {device}; its speed on several was not measured"
        ))
    });
    limits.collect()
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
