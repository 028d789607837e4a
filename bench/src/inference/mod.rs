//! `minuet bench inference`: the inference server through gRPC, against the same model, provider and batch size called directly.
//!
//! The server is the role's process, pinned to one core; the clients are this process, pinned to another. Two child processes run
//! batches directly on the server's core: one with Minuet's loader, one with ONNX Runtime's Python package. All are measured in
//! turn for several rounds, while the others are idle. The results are medians of the ratios, by wall clock and by the server's
//! processor time, which other work on the machine disturbs less. The server's cache is off, so every position is evaluated.
//! Direct calls have batches of the size that the load makes possible: all requests in flight, at most the largest batch.
//!
//! A bare gRPC server, which answers at once and without a model, is measured in turn with them: what gRPC itself costs.
//!
//! Then an open load, which sends on a schedule, finds the highest rate that the server keeps up with. Multiples of that rate
//! are the overload. At half of it the model is swapped.
//!
//! | module | content |
//! |---|---|
//! | [`served`] | the server process |
//! | [`bare`] | the bare gRPC server |
//! | [`load`] | the clients |
//! | [`ramp`] | the highest rate |
//! | [`report`] | the result |

mod arguments;
pub mod bare;
mod load;
mod ramp;
mod report;
mod served;

use std::{path::Path, time::Instant};

use anyhow::Context as _;
use prost::Message as _;
use proto::v1::evaluator_client::EvaluatorClient;
use tokio::runtime::Runtime;

pub use self::arguments::Arguments;
use self::{
    arguments::Network,
    load::{Clients, Load, Pace, Window, percentiles},
    report::{Bare, Figures, Latency, Open, Overload, Report, Swap},
    served::{Served, is_gpu},
};
use crate::harness::{
    compared::Compared,
    direct,
    measure::{Cores, Measured, Subject},
    model,
    onnxruntime::OnnxRuntime,
    positions::Positions,
    report::{median_of, median_ratio, print},
};

/// Seconds of the first calls, which are not measured.
const WARM_UP: f64 = 0.3;
/// Load during a swap of the model, as a share of the highest rate.
const SWAP_LOAD: f64 = 0.5;

/// Runs the benchmark and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let positions = Positions::play(&arguments.game)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let cores = Cores::find()?;
    let mut figures = Vec::new();
    for &network in &arguments.networks {
        for provider in &arguments.providers {
            let folder = folder.path().join(format!("{network}-{provider}"));
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
    print(&found, arguments.json, report::text)
}

/// Positions in the requests whose bytes are counted, and the number of such requests.
const ROWS: usize = 64;
const REQUESTS: usize = 100;
/// Bytes of a message's header in gRPC (5) and of its frame in HTTP/2 (9).
const HEADERS: usize = 14;

/// Returns the mean size of requests and of replies on the wire in bytes for a position, with a small network. Headers of TCP and IP are
/// not counted.
fn bytes_per_position(
    arguments: &Arguments,
    positions: &Positions,
    folder: &Path,
) -> anyhow::Result<[f64; 2]> {
    let (model, _) = model::find(&arguments.game, 0, None, (1, 8))?;
    let mut served = Served::start(arguments, "cpu", folder, model)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
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
    network: Network,
    provider: &str,
    positions: &Positions,
    folder: &Path,
    cores: &Cores,
) -> anyhow::Result<Vec<Figures>> {
    let (model, _) = model::find(&arguments.game, 0, None, (network.blocks, network.filters))?;
    let file = folder.join("direct.onnx");
    std::fs::write(&file, &model.bytes)?;
    let (batch, model_bytes) = (usize::from(arguments.batch), model.bytes.len());
    cores.use_first()?;
    let mut served = Served::start(arguments, provider, folder, model)?;
    let bare = bare::start()?;
    cores.use_second()?;
    // Built after this thread was pinned, so that the runtime's threads inherit its core.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let chosen = served.wait(&runtime)?;
    let mut figures = Vec::new();
    for &load in &arguments.loads {
        cores.use_first()?;
        let batch = batch.min(load.streams * load.rows);
        let mut direct = direct::start(&arguments.game, provider, batch, &file)?;
        let batching = (batch, direct.first_line.parse()?);
        let python = arguments.python.as_deref();
        let mut onnxruntime = OnnxRuntime::start(python, &file, positions, batching, &chosen)?;
        cores.use_second()?;
        direct.measure(WARM_UP)?;
        let clients = Clients::connect(&runtime, &served.address(), load, positions)?;
        clients.measure(Pace::Closed, served.subject(), WARM_UP)?;
        let unserved = Clients::connect(&runtime, &bare.first_line, load, positions)?;
        unserved.measure(Pace::Closed, bare.pid().into(), WARM_UP)?;
        let (mut directs, mut pythons, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        let mut bares = Vec::new();
        // All processes have run their first batches above.
        for _ in 0..arguments.rounds {
            directs.push(direct.measure(arguments.seconds)?);
            pythons.extend(onnxruntime.measure(arguments.seconds)?);
            windows.push(clients.measure(Pace::Closed, served.subject(), arguments.seconds)?);
            bares.push(unserved.measure(Pace::Closed, bare.pid().into(), arguments.seconds)?);
        }
        let serveds: Vec<Measured> = windows.iter().map(|window| window.answered).collect();
        let direct = Compared::new(&serveds, &directs).context("there are no rounds")?;
        let rate = median_of(&serveds, Measured::per_second);
        figures.push(Figures {
            network: network.to_string(),
            load: load.to_string(),
            direct_batch: batch,
            bare: Bare::of(&bares),
            asked_for: provider.to_owned(),
            provider: chosen.clone(),
            model_bytes,
            served: rate,
            served_per_cpu_second: median_of(&serveds, Measured::per_cpu_second),
            overhead_us_per_position: (1.0 / direct.cpu_ratio - 1.0) / direct.per_cpu_second * 1e6,
            direct,
            onnxruntime: onnxruntime.figures(&serveds, &pythons),
            other_threads_us_per_position: median_of(&serveds, Measured::other_threads_us),
            device_busy_share: busy_share(&serveds, &chosen, served.subject()),
            latency: Latency::of(&windows),
            open: match arguments.overloads().next() {
                Some(_) => Some(open(arguments, &clients, &mut served, &runtime, load, rate)?),
                None => None,
            },
        });
    }
    Ok(figures)
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
    let mut overloads: Vec<(f64, Vec<Window>)> =
        arguments.overloads().map(|times| (times, Vec::new())).collect();
    for _ in 0..arguments.rounds {
        peaks.push(at(peak)?);
        for (times, windows) in &mut overloads {
            windows.push(at(*times * peak)?);
        }
    }
    let began = Instant::now();
    let rate = SWAP_LOAD * peak;
    let swapped = clients.measure_while(Pace::Open(rate), subject, || served.swap(runtime))?;
    let answered = |windows: &[Window]| {
        windows
            .iter()
            .map(|window| window.answered)
            .collect::<Vec<Measured>>()
    };
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

impl Bare {
    fn of(windows: &[Window]) -> Self {
        Self {
            served: median_of(windows, |window| window.answered.per_second()),
            us_per_position: median_of(windows, |window| 1e6 / window.answered.per_cpu_second()),
            latency: Latency::of(windows),
        }
    }
}

impl Latency {
    fn of(windows: &[Window]) -> Self {
        let (p50_ms, p99_ms) = percentiles(windows);
        Self { p50_ms, p99_ms }
    }
}
