//! `minuet bench inference`: the inference server through gRPC, against the same model, provider and batch size called
//! directly in one process.
//!
//! The server is the role's process, pinned to one core; the clients are this process, pinned to another. A second child process
//! runs batches directly on the server's core. They are measured in turn for several rounds, while the others are idle. The
//! result is the median of the ratios, by wall clock and by the server's processor time, which other work on the machine
//! disturbs less. The server's cache is off, so every position is evaluated.

mod arguments;
mod direct;
mod load;
mod network;
mod report;
mod served;

use std::path::Path;

use anyhow::Context as _;

pub use self::arguments::Arguments;
use self::{
    load::Clients,
    network::Network,
    report::{Figures, Goodput, Report},
    served::{Served, is_gpu},
};
use crate::harness::{
    measure::{Cores, Measured, Subject},
    positions::Positions,
    report::{median, median_of, median_ratio, print},
};

/// Runs the benchmark and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(model) = &arguments.direct {
        return direct::work(model, &arguments);
    }
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
    let (chess_request, chess_reply) = Positions::play("chess")?.bytes(1);
    let (request, reply) = positions.bytes(64);
    let found = Report {
        bench: "inference",
        game: arguments.game,
        batch: arguments.batch,
        rounds: arguments.rounds,
        is_pinned: cores.are_two(),
        request_bytes_per_position: request as f64 / 64.0,
        reply_bytes_per_position: reply as f64 / 64.0,
        chess_evaluation_bytes: chess_request + chess_reply,
        figures,
    };
    print(&found, arguments.json, report::text)
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
    let model = positions.random_model(network.blocks, network.filters)?;
    cores.use_first()?;
    let mut direct = direct::start(arguments, provider, folder, &model)?;
    let mut served = Served::start(arguments, provider, folder, &model, positions)?;
    cores.use_second()?;
    // Built after this thread was pinned, so that the runtime's threads inherit its core.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let chosen = served.wait(&runtime)?;
    direct.measure(0.3)?;
    let mut figures = Vec::new();
    for &load in &arguments.loads {
        let mut clients = Clients::connect(&runtime, &served.address(), load, positions)?;
        clients.measure(served.subject(), 0.3)?;
        clients.forget_latencies();
        let (mut directs, mut serveds) = (Vec::new(), Vec::new());
        // Both processes have run their first batches above.
        for _ in 0..arguments.rounds {
            directs.push(direct.measure(arguments.seconds)?);
            serveds.push(clients.measure(served.subject(), arguments.seconds)?);
        }
        let (p50_ms, p99_ms) = clients.latencies();
        let direct_per_cpu = median_of(&directs, Measured::per_cpu_second);
        let cpu_ratio = median_ratio(&serveds, &directs, Measured::per_cpu_second);
        let peak = median_of(&serveds, Measured::per_second);
        let overload = if arguments.overload > 0.0 {
            Some(overload(arguments, &mut clients, served.subject(), peak)?)
        } else {
            None
        };
        figures.push(Figures {
            network: network.to_string(),
            load: load.to_string(),
            asked_for: provider.to_owned(),
            provider: chosen.clone(),
            direct: median_of(&directs, Measured::per_second),
            served: peak,
            direct_per_cpu_second: direct_per_cpu,
            served_per_cpu_second: median_of(&serveds, Measured::per_cpu_second),
            ratio: median_ratio(&serveds, &directs, Measured::per_second),
            cpu_ratio,
            overhead_us_per_position: (1.0 / cpu_ratio - 1.0) / direct_per_cpu * 1e6,
            other_threads_us_per_position: median_of(&serveds, Measured::other_threads_us),
            device_busy_share: busy_share(&serveds, &chosen, served.subject()),
            p50_ms,
            p99_ms,
            overload,
        });
    }
    Ok(figures)
}

/// Measures the server under overload and, in turn, at its capacity.
fn overload(
    arguments: &Arguments,
    clients: &mut Clients,
    subject: Subject,
    peak: f64,
) -> anyhow::Result<Goodput> {
    let (mut peaks, mut goods, mut offered, mut refused) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut latencies = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        peaks.push(clients.measure(subject, arguments.seconds)?);
        clients.forget_latencies();
        let found = clients.overload(subject, arguments.seconds, arguments.overload * peak)?;
        let (p50, p99) = clients.latencies();
        latencies.0.push(p50);
        latencies.1.push(p99);
        // The load lasts a tenth longer than the measurement.
        offered.push(found.offered as f64 / 1.1 / found.answered.time.as_secs_f64());
        refused.push(found.refused as f64 / found.offered.max(1) as f64);
        goods.push(found.answered);
    }
    Ok(Goodput {
        offered: median(&offered),
        answered: median_of(&goods, Measured::per_second),
        refused_share: median(&refused),
        ratio: median_ratio(&goods, &peaks, Measured::per_second),
        cpu_ratio: median_ratio(&goods, &peaks, Measured::per_cpu_second),
        p50_ms: median(&latencies.0),
        p99_ms: median(&latencies.1),
    })
}

/// Returns the share of time in which the server's device computed; `None` if `auto` chose a GPU, because the server has no
/// metrics page then.
fn busy_share(measured: &[Measured], chosen: &str, subject: Subject) -> Option<f64> {
    let is_known = subject.page.is_some() || !is_gpu(chosen);
    is_known.then(|| median_of(measured, Measured::busy_share))
}
