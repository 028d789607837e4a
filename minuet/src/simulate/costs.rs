//! [`Costs`]: processor time and bytes of each step, from measured figures.

use crate::plan::{
    NotMeasured, fastest_server,
    measured::Measured,
    reports::{Inference, Selfplay, Served},
    result::Source,
};

/// Positions that the store appends at once: games of this length, as in the benchmark of the store.
pub const GAME: f64 = 64.0;

/// Measured costs. Times are in seconds.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Processor time of an actor for a visit.
    pub visit: f64,
    /// Share of the visits that ask the network.
    pub asking: f64,
    /// Positions that are played for each visit.
    pub positions: f64,
    /// Time of the device for a position in a batch.
    pub compute: f64,
    /// Threads of the device that work for this time.
    pub compute_threads: u32,
    /// Processor time of the server's other threads for a request.
    pub request: f64,
    /// Processor time of the server's other threads for a position.
    pub row: f64,
    /// Processor time of the store for a position; `None` if no store was measured.
    pub store: Option<StoreCosts>,
    /// Time of the learner for a sample; `None` if no training was measured.
    pub train: Option<f64>,
}

/// Processor time of the store for a position, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct StoreCosts {
    /// When the position is appended.
    pub append: f64,
    /// When the position is sampled.
    pub sample: f64,
}

/// Error: a figure that a simulation needs was not measured.
#[derive(Debug, thiserror::Error)]
#[error(
    "{figure} of {game} with a network of {network} is not among the figures; measure it with `{command}`"
)]
pub struct Missing {
    figure: &'static str,
    game: String,
    network: String,
    command: String,
}

/// Costs, and where they come from.
#[derive(Clone, Debug)]
pub struct Found {
    pub costs: Costs,
    /// Origins of the figures.
    pub sources: Vec<Source>,
}

/// The game, the network, and whether the roles share one machine.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    pub game: &'a str,
    pub network: &'a str,
    /// True if all roles share the cores of one machine. Then the device computes with as many threads as in the measured self-play;
    /// otherwise a server has one core.
    pub is_shared: bool,
}

impl Wanted<'_> {
    /// Finds the costs among the figures.
    ///
    /// # Errors
    /// [`Missing`] names the first figure that is not there; [`NotMeasured`] if there is none of the network.
    pub fn find(&self, measured: &Measured) -> anyhow::Result<Found> {
        let &Self { game, network, .. } = self;
        let (blocks, filters) = network.split_once('x').unwrap_or((network, ""));
        let missing = |figure, bench: String| Missing {
            figure,
            game: game.into(),
            network: network.into(),
            command: format!("minuet bench {bench} --json"),
        };
        let selfplay = measured.selfplay(game, network);
        let inference = measured.inference(game, network);
        let training = measured.training(game, network);
        if selfplay.is_none() && inference.is_none() && training.is_none() {
            return Err(NotMeasured::new(game, network, measured).into());
        }
        let of_play = || format!("selfplay --game {game} --blocks {blocks} --filters {filters}");
        let of_server = || format!("inference --game {game} --networks {network} --overload 0");
        let (play_origin, play) =
            selfplay.ok_or_else(|| missing("the processor time of a visit", of_play()))?;
        let (server_origin, server) =
            inference.ok_or_else(|| missing("the time of an evaluation", of_server()))?;
        let store = measured.replay(game);
        let (request, row) = other_threads(server, network, play);
        let (compute, compute_threads) = if self.is_shared {
            device(play).ok_or_else(|| missing("the speed of the device by threads", of_play()))?
        } else {
            let per_position = served(server, network, play)
                .map(|found| 1.0 / found.served_per_cpu_second)
                .ok_or_else(|| missing("the time of an evaluation", of_server()))?;
            // The measured time has that of the other threads in it.
            let others = row + request / play.rows_per_request;
            ((per_position - others).max(0.1 * per_position), 1)
        };
        let trained = training.and_then(|(origin, found)| {
            let fastest = found
                .figures
                .iter()
                .max_by(|one, other| one.samples.total_cmp(&other.samples))?;
            Some((origin, 1.0 / fastest.samples_per_cpu_second))
        });
        let origins = [
            ("selfplay", Some(play_origin)),
            ("inference", Some(server_origin)),
            ("replay", store.map(|(origin, _)| origin)),
            ("training", trained.map(|(origin, _)| origin)),
        ];
        let sources = origins.into_iter().filter_map(|(bench, origin)| {
            let origin = origin?.clone();
            Some(Source { bench, origin })
        });
        Ok(Found {
            costs: Costs {
                visit: play.actor_us_per_visit * 1e-6,
                asking: play.fresh_evaluations_per_second / play.visits_per_second,
                positions: play.positions_per_second / play.visits_per_second,
                compute,
                compute_threads,
                request,
                row,
                store: store.map(|(_, found)| StoreCosts {
                    append: 1.0 / found.appended.per_cpu_second,
                    sample: 1.0 / found.sampled.per_cpu_second,
                }),
                train: trained.map(|(_, seconds)| seconds),
            },
            sources: sources.collect(),
        })
    }
}

/// Returns the figures of the fastest provider, under the load whose requests are most like those of self-play.
fn served<'a>(server: &'a Inference, network: &str, play: &Selfplay) -> Option<&'a Served> {
    fastest_server(&server.figures, network, Some(play.rows_per_request))
}

/// Processor time of the server's other threads, for a request and for a position of it: the two unknowns of two loads whose
/// requests have different sizes. With one load all of it is the position's, and 0 where it was not measured.
fn other_threads(server: &Inference, network: &str, play: &Selfplay) -> (f64, f64) {
    let Some(usual) = served(server, network, play) else {
        return (0.0, 0.0);
    };
    let of_position = |found: &Served| Some(found.other_threads_us_per_position?.max(0.0) * 1e-6);
    let Some(one) = of_position(usual) else {
        return (0.0, 0.0);
    };
    let other = server.figures.iter().find_map(|found| {
        let is_other = found.network == network
            && found.provider == usual.provider
            && found.load.rows != usual.load.rows;
        Some((found.load, of_position(found).filter(|_| is_other)?))
    });
    let Some((load, two)) = other else {
        return (0.0, one);
    };
    // row + request / rows = cost, for both loads.
    let (one_rows, two_rows) = (f64::from(usual.load.rows), f64::from(load.rows));
    let request = ((two - one) / (1.0 / two_rows - 1.0 / one_rows)).max(0.0);
    (request, (one - request / one_rows).max(0.0))
}

/// Seconds of the device for a position with the threads that the measured self-play had, and these threads.
fn device(play: &Selfplay) -> Option<(f64, u32)> {
    let threads = play.inference_threads?;
    let speed = play.thread_speeds.iter().find(|(count, _)| *count == threads)?;
    Some((1.0 / speed.1, threads))
}
