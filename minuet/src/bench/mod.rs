//! `minuet bench`: one module for each benchmark, all printed the same way ([`report`]).

mod games;
mod inference;
mod replay;
mod report;
mod search;
mod selfplay;

use clap::Subcommand;

/// Arguments of `minuet bench`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Rules engines: action-perft nodes per second, by game.
    Games(games::Arguments),
    /// Search with a uniform evaluator: traversals per second, by game.
    Search(search::Arguments),
    /// The inference server through gRPC, against the same model called directly.
    Inference(inference::Arguments),
    /// The replay store through gRPC: positions appended durably, positions sampled.
    Replay(replay::Arguments),
    /// Whole-system self-play: visits, fresh evaluations, cache hits and games per hour.
    Selfplay(selfplay::Arguments),
}

/// Runs one benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.what {
        What::Games(arguments) => games::run(arguments),
        What::Search(arguments) => search::run(arguments),
        What::Inference(arguments) => inference::run(arguments),
        What::Replay(arguments) => replay::run(arguments),
        What::Selfplay(arguments) => selfplay::run(arguments),
    }
}
