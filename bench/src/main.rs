//! `minuet bench`: one module for each benchmark; [`harness`] holds the parts that all share.
//!
//! `minuet bench NAME …` starts this program as `minuet-bench NAME …`.

mod accuracy;
mod dense;
mod games;
mod generator;
mod harness;
mod inference;
mod lab;
mod playouts;
mod replay;
mod search;
mod selfplay;
mod tasks;
mod training;

use std::process::ExitCode;

use clap::Parser;

/// Runs a benchmark and prints its figures.
#[derive(Parser)]
#[command(
    name = "minuet-bench",
    bin_name = "minuet bench",
    version,
    after_help = "Example:\n  minuet bench search --game chess --json"
)]
enum Benchmark {
    /// Networks and searches against an exact solver: the share of optimal moves, by phase.
    Accuracy(accuracy::Arguments),
    /// Index rows against dense planes: the same network served from both, on loopback and through a link.
    Dense(dense::Arguments),
    /// Rules engines: action-perft nodes per second, by game.
    Games(games::Arguments),
    /// Search with a uniform evaluator: traversals per second, by game.
    Search(search::Arguments),
    /// The generator game: problems solved by uniform UCT and by a network.
    Generator(generator::Arguments),
    /// ARC-like tasks solved by uniform UCT and by a network of the generator game.
    Tasks(tasks::Arguments),
    /// The inference server through gRPC, against the same model called directly.
    Inference(inference::Arguments),
    /// A whole player with a network on one core, against the network alone.
    Playouts(playouts::Arguments),
    /// The replay store through gRPC: positions appended, positions sampled.
    Replay(replay::Arguments),
    /// Whole-system self-play: visits, fresh evaluations, cache hits and games per hour.
    Selfplay(selfplay::Arguments),
    /// Compare settings by training with each of them, with equal budgets (`minuet lab`).
    #[command(hide = true)]
    Lab(lab::Arguments),
    /// Training steps in f32 and bf16, and of the same network in PyTorch.
    Training(training::Arguments),
    /// Internal: the baseline that calls a model directly, controlled by standard input.
    #[command(hide = true)]
    Direct(harness::direct::Arguments),
    /// Internal: the server of a plain dense model.
    #[command(hide = true)]
    DenseServer(dense::served::Arguments),
    /// Internal: the inference server with a simulated device.
    #[command(hide = true)]
    Device(service::role::Arguments),
}

fn main() -> ExitCode {
    service::end_if_output_fails("minuet bench");
    match run(Benchmark::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minuet bench: {}", service::plain_lines(&format!("{error:#}")));
            ExitCode::from(if is_bad_usage(&error) { 2 } else { 1 })
        }
    }
}

/// True if the error lies in the arguments.
fn is_bad_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<config::ConfigError>()
            || cause.is::<::games::registry::UnknownGame>()
            || cause.is::<::games::StartError>()
            || cause.is::<arena::SpecError>()
            || cause.is::<network::name::NoModelName>()
    })
}

fn run(benchmark: Benchmark) -> anyhow::Result<()> {
    match benchmark {
        Benchmark::Accuracy(arguments) => accuracy::run(arguments),
        Benchmark::Dense(arguments) => dense::run(arguments),
        Benchmark::DenseServer(arguments) => dense::served::run(arguments),
        Benchmark::Games(arguments) => games::run(arguments),
        Benchmark::Search(arguments) => search::run(arguments),
        Benchmark::Generator(arguments) => generator::run(arguments),
        Benchmark::Tasks(arguments) => tasks::run(arguments),
        Benchmark::Inference(arguments) => inference::run(arguments),
        Benchmark::Lab(arguments) => lab::run(arguments),
        Benchmark::Playouts(arguments) => playouts::run(arguments),
        Benchmark::Replay(arguments) => replay::run(arguments),
        Benchmark::Selfplay(arguments) => selfplay::run(arguments),
        Benchmark::Training(arguments) => training::run(arguments),
        Benchmark::Device(arguments) => selfplay::device::run(arguments),
        Benchmark::Direct(arguments) => harness::direct::run(arguments),
    }
}
