//! `minuet bench inference`: the inference server through gRPC, against the same model, provider and batch size called directly.
//!
//! The server is the role's process, pinned to one core; the clients are this process, pinned to another. Two child processes run
//! batches directly on the server's core: one with Minuet's loader, one with ONNX Runtime's Python package. All are measured in
//! turn for several rounds, while the others are idle. The results are medians of the ratios, by wall clock and by the server's
//! processor time, which other work on the machine disturbs less. The server's cache is off, so every position is evaluated.
//! Direct calls have batches of the size that the load makes possible: all requests in flight, at most the largest batch.
//!
//! Then an open load, which sends on a schedule, finds the highest rate that the server keeps up with. Multiples of that rate
//! are the overload. At half of it the model is swapped.
//!
//! | module | content |
//! |---|---|
//! | [`served`] | the server process |
//! | [`load`] | the clients |
//! | [`ramp`] | the highest rate |

mod load;
mod ramp;
pub mod served;

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use games::registry;
use prost::Message as _;
use proto::v1::evaluator_client::EvaluatorClient;
use serde::Serialize;
use tokio::runtime::Runtime;

use self::{
    load::{Clients, Load, Pace, Window},
    served::{Served, is_gpu},
};
use crate::harness::{
    compared::{Baselines, Compared},
    measure::{Cores, Measured, Subject},
    model, onnxruntime,
    positions::Positions,
    report::{median_of, median_ratio, print},
    runtime,
};

/// Seconds of the first calls, which are not measured.
const WARM_UP: f64 = 0.3;
/// Load during a swap of the model, as a share of the highest rate.
const SWAP_LOAD: f64 = 0.5;
/// Positions in the requests whose bytes are counted, and the number of such requests.
const ROWS: usize = 64;
const REQUESTS: usize = 100;
/// Bytes of a message's header in gRPC (5) and of its frame in HTTP/2 (9).
const HEADERS: usize = 14;

/// Arguments of `minuet bench inference`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet bench inference --json --python \"$(python3 scripts/python_env.py onnxruntime)\"
  minuet bench inference --networks 6x64 --loads 4x64 --providers cpu
  minuet bench inference --providers cuda --batch 512 --networks 6x64,20x256 --loads 16x256,64x16 --json   (on a GPU)")]
pub struct Arguments {
    /// Game whose positions are evaluated.
    #[arg(long, default_value = "paco-sako", value_parser = PossibleValuesParser::new(registry::NAMES))]
    game: String,
    /// Networks of random weights, as BLOCKSxFILTERS.
    #[arg(long, value_delimiter = ',', default_value = "2x32,6x64", value_parser = network)]
    networks: Vec<Pair>,
    /// Loads, as STREAMSxPOSITIONS (per request). Each stream has a connection of its own and one request at a time.
    #[arg(long, value_delimiter = ',', default_value = "1x1,8x1,64x1,4x64", value_parser = load)]
    loads: Vec<Pair>,
    /// Largest batch, also of the direct calls, unless the load has fewer positions in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Providers to measure, as in `inference.provider`.
    #[arg(long, value_delimiter = ',', default_value = "cpu,auto")]
    providers: Vec<String>,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Loads of the overload test, as multiples of the highest rate that the server keeps up with; 0: no open loads.
    #[arg(long, value_delimiter = ',', default_value = "2,3", value_parser = times)]
    overload: Vec<f64>,
    /// Largest number of queued positions in the server.
    #[arg(long, default_value_t = 1024)]
    queue: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Python interpreter with ONNX Runtime, for the comparison.
    #[arg(long)]
    python: Option<PathBuf>,
}

/// Blocks and filters of a residual tower (over clans, convolutions and filters of a fish-eye network), or streams and positions of a
/// load.
pub type Pair = (usize, usize);

/// Reads the size of a network, as `BLOCKSxFILTERS`.
pub fn network(text: &str) -> Result<Pair, String> {
    pair(text, 0..=100, 1..=4096)
        .ok_or_else(|| format!("`{text}` is not a network; write blocks x filters, e.g. 6x64"))
}

fn load(text: &str) -> Result<Pair, String> {
    pair(text, 1..=1024, 1..=4096)
        .ok_or_else(|| format!("`{text}` is not a load; write streams x rows, e.g. 4x64 (at most 1024x4096)"))
}

fn pair(text: &str, first: RangeInclusive<usize>, second: RangeInclusive<usize>) -> Option<Pair> {
    let (left, right) = text.split_once('x')?;
    let pair = (left.parse().ok()?, right.parse().ok()?);
    (first.contains(&pair.0) && second.contains(&pair.1)).then_some(pair)
}

fn times(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times| (0.0..=100.0).contains(times));
    times.ok_or_else(|| format!("`{text}` is not a multiple from 0 to 100"))
}

/// Complete result of the benchmark.
#[derive(Serialize)]
struct Report {
    bench: &'static str,
    game: String,
    batch: u16,
    rounds: u8,
    /// True if server and clients were pinned to a core each.
    is_pinned: bool,
    /// Mean bytes per position in requests of 64 positions, framing included.
    request_bytes_per_position: f64,
    reply_bytes_per_position: f64,
    figures: Vec<Figures>,
}

/// Figures of one network on one provider under one load; medians over the rounds. Rates are positions per second.
#[derive(Serialize)]
struct Figures {
    /// Blocks x filters.
    network: String,
    /// Streams x positions per request.
    load: String,
    /// Positions in each batch of the direct calls: all that the load has in flight, at most the largest batch.
    direct_batch: usize,
    asked_for: String,
    provider: String,
    /// Size of the model's file.
    model_bytes: usize,
    /// Rate served to streams that have one request in flight each.
    served: f64,
    served_per_cpu_second: f64,
    /// Comparison with direct calls by Minuet's loader.
    direct: Compared,
    /// Comparison with ONNX Runtime's Python package.
    onnxruntime: onnxruntime::Figures,
    /// Overhead of the server in microseconds of processor time per position, from `direct.cpu_ratio`. For a model that takes
    /// hundreds of microseconds, 1 % of noise is more than the whole overhead.
    overhead_us_per_position: f64,
    /// Processor time of all threads except the one that runs the model, in microseconds per position.
    other_threads_us_per_position: f64,
    /// Share of time in which the device (the GPU, or the thread that runs the model) computed, 0 to 1; `None` if not known.
    device_busy_share: Option<f64>,
    latency: Latency,
    /// Figures of open loads.
    open: Option<Open>,
}

/// Latency of answered requests.
#[derive(Clone, Copy, Serialize)]
struct Latency {
    p50_ms: f64,
    p99_ms: f64,
}

/// Figures of loads that are offered on a schedule. Latencies begin at the time on the schedule.
#[derive(Serialize)]
struct Open {
    /// Highest offered rate that the server keeps up with.
    peak: f64,
    /// Latency at that rate.
    latency: Latency,
    overload: Vec<Overload>,
    swap: Swap,
}

/// Figures of a load above the highest rate.
#[derive(Serialize)]
struct Overload {
    /// Intended load, as a multiple of the highest rate.
    times: f64,
    /// Rate that the clients reached.
    offered: f64,
    answered: f64,
    refused_share: f64,
    /// Rate answered under overload / rate answered at the peak.
    ratio: f64,
    latency: Latency,
}

/// Figures of a load while the server loads and takes over a new model, at half of the highest rate. No request failed.
#[derive(Serialize)]
struct Swap {
    offered: f64,
    /// Positions refused.
    refused: u64,
    /// Time from the publication of the new model to its first answer, in seconds.
    seconds: f64,
    latency: Latency,
}

/// Runs the benchmark and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let positions = Positions::play(&arguments.game)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let cores = Cores::find()?;
    let mut figures = Vec::new();
    for &network in &arguments.networks {
        for provider in &arguments.providers {
            let folder = folder.path().join(format!("{}-{provider}", written(network)));
            std::fs::create_dir_all(&folder)?;
            figures.extend(measure(
                &arguments, network, provider, &positions, &folder, &cores,
            )?);
        }
    }
    let [request, reply] = bytes_per_position(&arguments, &positions, &folder.path().join("bytes"))?;
    let found = Report {
        bench: "inference",
        game: arguments.game,
        batch: arguments.batch,
        rounds: arguments.rounds,
        is_pinned: cores.are_two(),
        request_bytes_per_position: request,
        reply_bytes_per_position: reply,
        figures,
    };
    print(&found, arguments.json)
}

fn written((left, right): Pair) -> String {
    format!("{left}x{right}")
}

/// Returns the mean size of requests and of replies on the wire in bytes for a position, with a small network. Headers of TCP and IP are
/// not counted.
fn bytes_per_position(
    arguments: &Arguments,
    positions: &Positions,
    folder: &Path,
) -> anyhow::Result<[f64; 2]> {
    let (model, _) = model::find(&arguments.game, None, None, (1, 8))?;
    let runtime = runtime()?;
    let mut served = Served::start((arguments.batch, arguments.queue), "cpu", folder, model)?;
    served.wait(&runtime)?;
    let _inside = runtime.enter();
    let mut client = EvaluatorClient::new(service::connect::channel(&served.address())?);
    let mut bytes = [0, 0];
    for number in 0..REQUESTS {
        let request = positions.request(number, ROWS);
        bytes[0] += HEADERS + request.encoded_len();
        let reply = runtime.block_on(client.evaluate(request))?.into_inner();
        bytes[1] += HEADERS + reply.encoded_len();
    }
    Ok(bytes.map(|sum| sum as f64 / (REQUESTS * ROWS) as f64))
}

/// Measures one network on one provider under all loads.
fn measure(
    arguments: &Arguments,
    network: Pair,
    provider: &str,
    positions: &Positions,
    folder: &Path,
    cores: &Cores,
) -> anyhow::Result<Vec<Figures>> {
    let (model, _) = model::find(&arguments.game, None, None, network)?;
    cores.use_first()?;
    let mut served = Served::start(
        (arguments.batch, arguments.queue),
        provider,
        folder,
        model.clone(),
    )?;
    cores.use_second()?;
    let runtime = runtime()?;
    let chosen = served.wait(&runtime)?;
    let mut figures = Vec::new();
    for &(streams, rows) in &arguments.loads {
        cores.use_first()?;
        let batch = usize::from(arguments.batch).min(streams * rows);
        let providers = (provider, &*chosen);
        let python = arguments.python.as_deref();
        let mut baselines = Baselines::start((positions, batch), (&model, folder), providers, python)?;
        cores.use_second()?;
        baselines.warm_up(WARM_UP)?;
        let load = Load { streams, rows };
        let clients = Clients::connect(&runtime, &served.address(), load, positions)?;
        clients.measure(Pace::Closed, served.subject(), WARM_UP)?;
        let mut windows = Vec::new();
        // All processes have run their first batches above.
        for _ in 0..arguments.rounds {
            baselines.measure(arguments.seconds)?;
            windows.push(clients.measure(Pace::Closed, served.subject(), arguments.seconds)?);
        }
        let serveds = answered(&windows);
        let (direct, onnxruntime) = baselines.compare(&serveds)?;
        let rate = median_of(&serveds, Measured::per_second);
        figures.push(Figures {
            network: written(network),
            load: written((streams, rows)),
            direct_batch: batch,
            asked_for: provider.to_owned(),
            provider: chosen.clone(),
            model_bytes: model.bytes.len(),
            served: rate,
            served_per_cpu_second: median_of(&serveds, Measured::per_cpu_second),
            overhead_us_per_position: (1.0 / direct.cpu_ratio - 1.0) / direct.per_cpu_second * 1e6,
            direct,
            onnxruntime,
            other_threads_us_per_position: median_of(&serveds, Measured::other_threads_us),
            device_busy_share: busy_share(&serveds, &chosen, served.subject()),
            latency: Latency::of(&windows),
            open: match arguments.overload.iter().any(|&times| times > 0.0) {
                true => Some(open(arguments, &clients, &mut served, &runtime, load, rate)?),
                false => None,
            },
        });
    }
    Ok(figures)
}

fn answered(windows: &[Window]) -> Vec<Measured> {
    windows.iter().map(|window| window.answered).collect()
}

/// Measures the server under open loads: at the highest rate that it keeps up with, above it, and during a swap of the model.
fn open(
    arguments: &Arguments,
    clients: &Clients,
    served: &mut Served,
    runtime: &Runtime,
    load: Load,
    guess: f64,
) -> anyhow::Result<Open> {
    let subject = served.subject();
    let at = |rate| clients.measure(Pace::Open(rate), subject, arguments.seconds);
    let peak = ramp::peak(load, guess, at)?;
    let mut peaks = Vec::new();
    let times = arguments.overload.iter().copied().filter(|&times| times > 0.0);
    let mut overloads: Vec<(f64, Vec<Window>)> = times.map(|times| (times, Vec::new())).collect();
    for _ in 0..arguments.rounds {
        peaks.push(at(peak)?);
        for (times, windows) in &mut overloads {
            windows.push(at(*times * peak)?);
        }
    }
    let began = Instant::now();
    let rate = SWAP_LOAD * peak;
    let swapped = clients.measure_while(Pace::Open(rate), subject, || served.swap(runtime))?;
    Ok(Open {
        peak,
        latency: Latency::of(&peaks),
        overload: overloads
            .iter()
            .map(|(times, windows)| Overload {
                times: *times,
                offered: median_of(windows, Window::offered_per_second),
                answered: median_of(windows, |window| window.answered.per_second()),
                refused_share: median_of(windows, Window::refused_share),
                ratio: median_ratio(&answered(windows), &answered(&peaks), Measured::per_second),
                latency: Latency::of(windows),
            })
            .collect(),
        swap: Swap {
            offered: swapped.offered_per_second(),
            refused: swapped.refused,
            seconds: began.elapsed().as_secs_f64(),
            latency: Latency::of(&[swapped]),
        },
    })
}

/// Returns the share of time in which the server's device computed; `None` if `auto` chose a GPU, because the server has no
/// metrics page then.
fn busy_share(measured: &[Measured], chosen: &str, subject: Subject) -> Option<f64> {
    let is_known = subject.page.is_some() || !is_gpu(chosen);
    is_known.then(|| median_of(measured, Measured::busy_share))
}

impl Latency {
    /// Returns the median and the 99th percentile over all windows.
    fn of(windows: &[Window]) -> Self {
        let latencies = windows.iter().flat_map(|window| &window.latencies);
        let mut latencies: Vec<Duration> = latencies.copied().collect();
        latencies.sort_unstable();
        let at = |share: f64| {
            let place = (latencies.len() as f64 * share) as usize;
            latencies.get(place).copied().unwrap_or_default().as_secs_f64() * 1e3
        };
        Self {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
        }
    }
}
