//! `minuet`: the command line. Each command is a module of its own; this file only names them.

mod bench;
mod perft;
mod rules;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Trains game-playing networks by self-play: actors, an inference server, a replay store and a learner.
#[derive(Parser)]
#[command(name = "minuet", version, propagate_version = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train on this machine: start every role, watch it learn, stop with Ctrl-C, start again to go on.
    Up(up::Arguments),
    /// Answer questions about rules: JSON lines in, JSON lines out.
    Rules(rules::Arguments),
    /// Count action sequences, to check a rules engine.
    Perft(perft::Arguments),
    /// Measure: every benchmark prints its figures, with --json as one object.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let done = match CommandLine::parse().command {
        Command::Up(arguments) => up::run(arguments),
        Command::Rules(arguments) => rules::run(arguments),
        Command::Perft(arguments) => perft::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minuet: {error:#}");
            // A setting that cannot be used is bad usage.
            let unusable = error
                .chain()
                .any(|cause| cause.is::<service::config::ConfigError>());
            ExitCode::from(if unusable { 2 } else { 1 })
        }
    }
}
