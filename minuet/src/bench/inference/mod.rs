//! `minuet bench inference`: the inference server through gRPC, against the same model, provider and batch size called
//! directly in one process.
//!
//! The server is the real process, pinned to one core; the client is this process, pinned to another. A second child runs
//! batches directly on the server's core. Both are measured in turn, several rounds each, and the median of the ratios is
//! given: by wall clock, and per second of processor time of the server, which other work on the machine disturbs less.

mod direct;
pub(super) mod machine;
mod positions;
mod served;

use std::{fmt::Write as _, path::PathBuf};

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use games::catalogue;
use serde::Serialize;

use self::{direct::Direct, machine::Cores, positions::Positions, served::Served};
use super::report;

/// Arguments of `minuet bench inference`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet bench inference --blocks 6 --filters 64 --json")]
pub struct Arguments {
    /// The game whose positions are evaluated.
    #[arg(long, default_value = "paco-sako", value_parser = PossibleValuesParser::new(catalogue::NAMES))]
    game: String,
    /// Residual blocks of the network, whose weights are random.
    #[arg(long, default_value_t = 6)]
    blocks: usize,
    /// Filters of the network.
    #[arg(long, default_value_t = 64)]
    filters: usize,
    /// Streams, each on a connection of its own with one request at a time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    streams: u16,
    /// Positions in a request.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    rows: u16,
    /// Largest batch, and the batch size of the direct calls.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Providers to measure, as in `inference.provider`.
    #[arg(long, value_delimiter = ',', default_value = "cpu,auto")]
    providers: Vec<String>,
    /// Rounds, of which the median is given.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// (For the benchmark itself:) call this model directly, as standard input says.
    #[arg(long, hide = true)]
    direct: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    bench: &'static str,
    game: String,
    network: String,
    streams: u16,
    rows_per_request: u16,
    batch: u16,
    rounds: u8,
    /// Whether server and client had a core of their own each.
    is_pinned: bool,
    /// What one position costs on the wire, in bytes: HTTP/2 and gRPC framing included.
    request_bytes_per_position: f64,
    reply_bytes_per_position: f64,
    /// The same for requests of a single position.
    single_evaluation_bytes: usize,
    providers: Vec<Figures>,
}

/// One provider's figures, medians over the rounds.
#[derive(Serialize)]
struct Figures {
    asked_for: String,
    provider: String,
    /// Positions a second.
    direct: f64,
    served: f64,
    /// Positions for each second of processor time.
    direct_per_cpu_second: f64,
    served_per_cpu_second: f64,
    /// Served / direct, by wall clock.
    ratio: f64,
    /// Served / direct, for each second of processor time: the robust figure.
    cpu_ratio: f64,
    /// Processor time outside the model, in microseconds for each position.
    overhead_us_per_position: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures and prints.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    if let Some(model) = &arguments.direct {
        return direct::work(model, &arguments);
    }
    let positions = Positions::play(&arguments.game, usize::from(arguments.rows))?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let model = positions.random_model(arguments.blocks, arguments.filters)?;
    let cores = Cores::find()?;
    let providers = arguments
        .providers
        .iter()
        .map(|provider| measure(&arguments, provider, &positions, &model, folder.path(), &cores))
        .collect::<anyhow::Result<_>>()?;
    let (request, reply) = positions.bytes(usize::from(arguments.rows));
    let (single_request, single_reply) = positions.bytes(1);
    let found = Report {
        bench: "inference",
        game: arguments.game,
        network: format!("{}x{}", arguments.blocks, arguments.filters),
        streams: arguments.streams,
        rows_per_request: arguments.rows,
        batch: arguments.batch,
        rounds: arguments.rounds,
        is_pinned: cores.are_two(),
        request_bytes_per_position: request as f64 / f64::from(arguments.rows),
        reply_bytes_per_position: reply as f64 / f64::from(arguments.rows),
        single_evaluation_bytes: single_request + single_reply,
        providers,
    };
    report::print(&found, arguments.json, text)
}

fn measure(
    arguments: &Arguments,
    provider: &str,
    positions: &Positions,
    model: &[u8],
    folder: &std::path::Path,
    cores: &Cores,
) -> anyhow::Result<Figures> {
    let folder = folder.join(provider);
    std::fs::create_dir_all(&folder)?;
    cores.use_first()?;
    let mut direct = Direct::start(arguments, provider, &folder, model)?;
    let mut served = Served::start(arguments, provider, &folder, model, positions)?;
    cores.use_second()?;
    let mut client = served.client(arguments, positions)?;
    client.measure(&served, 0.3)?;
    direct.measure(0.3)?;
    let (mut directs, mut serveds) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        directs.push(direct.measure(arguments.seconds)?);
        serveds.push(client.measure(&served, arguments.seconds)?);
    }
    let median = |value: &dyn Fn(usize) -> f64| {
        let values: Vec<f64> = (0..directs.len()).map(value).collect();
        report::median(&values)
    };
    let direct_per_cpu = median(&|round| directs[round].per_cpu_second());
    let cpu_ratio = median(&|round| serveds[round].per_cpu_second() / directs[round].per_cpu_second());
    let (p50_ms, p99_ms) = client.latencies();
    Ok(Figures {
        asked_for: provider.to_owned(),
        provider: client.provider().to_owned(),
        direct: median(&|round| directs[round].per_second()),
        served: median(&|round| serveds[round].per_second()),
        direct_per_cpu_second: direct_per_cpu,
        served_per_cpu_second: median(&|round| serveds[round].per_cpu_second()),
        ratio: median(&|round| serveds[round].per_second() / directs[round].per_second()),
        cpu_ratio,
        overhead_us_per_position: (1.0 / cpu_ratio - 1.0) / direct_per_cpu * 1e6,
        p50_ms,
        p99_ms,
    })
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{} network, {}, {} streams of {} positions, batches of {}{}\n",
        report.network,
        report.game,
        report.streams,
        report.rows_per_request,
        report.batch,
        if report.is_pinned {
            ""
        } else {
            " (server and client share a core)"
        },
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "on the wire, for each position: {:.1} bytes there, {:.1} back; alone {} both ways",
        report.request_bytes_per_position, report.reply_bytes_per_position, report.single_evaluation_bytes
    );
    let _ = writeln!(
        text,
        "{:<14} {:>10} {:>10} {:>7} {:>9} {:>12} {:>8} {:>8}",
        "provider", "direct/s", "served/s", "ratio", "cpu ratio", "overhead µs", "p50 ms", "p99 ms"
    );
    for figures in &report.providers {
        let _ = writeln!(
            text,
            "{:<14} {:>10.0} {:>10.0} {:>7.3} {:>9.3} {:>12.2} {:>8.2} {:>8.2}",
            figures.provider,
            figures.direct,
            figures.served,
            figures.ratio,
            figures.cpu_ratio,
            figures.overhead_us_per_position,
            figures.p50_ms,
            figures.p99_ms
        );
    }
    text
}
