//! `minuet bench`: one module for each benchmark, all printed the same way ([`report`]).

mod accuracy;
mod games;
mod generator;
mod inference;
mod page;
mod playouts;
mod replay;
mod report;
mod search;
mod selfplay;
mod training;

use clap::Subcommand;

/// Arguments of `minuet bench`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Networks and searches against an exact solver: the share of optimal moves, by phase.
    Accuracy(accuracy::Arguments),
    /// Rules engines: action-perft nodes per second, by game.
    Games(games::Arguments),
    /// Search with a uniform evaluator: traversals per second, by game.
    Search(search::Arguments),
    /// The generator game: problems solved by uniform UCT and by a network.
    Generator(generator::Arguments),
    /// The inference server through gRPC, against the same model called directly.
    Inference(inference::Arguments),
    /// A whole player with a network on one core, against the network alone.
    Playouts(playouts::Arguments),
    /// The replay store through gRPC: positions appended durably, positions sampled.
    Replay(replay::Arguments),
    /// Whole-system self-play: visits, fresh evaluations, cache hits and games per hour.
    Selfplay(selfplay::Arguments),
    /// Training steps in f32 and bf16, and of the same network in PyTorch.
    Training(training::Arguments),
}

/// Runs one benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.what {
        What::Accuracy(arguments) => accuracy::run(arguments),
        What::Games(arguments) => games::run(arguments),
        What::Search(arguments) => search::run(arguments),
        What::Generator(arguments) => generator::run(arguments),
        What::Inference(arguments) => inference::run(arguments),
        What::Playouts(arguments) => playouts::run(arguments),
        What::Replay(arguments) => replay::run(arguments),
        What::Selfplay(arguments) => selfplay::run(arguments),
        What::Training(arguments) => training::run(arguments),
    }
}
