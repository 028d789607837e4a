//! `minuet`: the command line. Each command is a module; this file lists them.
//!
//! It is a library, so that a Python interpreter with a game from outside runs the same commands ([`run_in_python`]).

mod analyze;
mod arena;
mod bench;
mod config;
mod doctor;
mod draft;
mod grow;
mod gtp;
mod network;
mod perft;
mod plan;
mod play;
mod query;
mod records;
mod rules;
mod solve;
#[cfg(test)]
mod tests;
mod uci;

use std::{ffi::OsString, process::ExitCode};

use ::arena::SpecError;
use ::config::ConfigError;
use ::network::name::NoModelName;
use clap::{Parser, Subcommand};
use games::{StartError, registry::UnknownGame};
use launcher::{BadUsage, processes::host, up};
use records::{check::Failure, source::Damage};
use service::role::{self, Role};

/// Trains game-playing networks by self-play: actors, an inference server, a replay store and a learner.
#[derive(Parser)]
#[command(name = "minuet", version = service::release::version(), propagate_version = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train on this machine: start every role and show the progress. Ctrl-C stops the run, the same command continues it.
    Up(up::Arguments),
    /// Begin a run with the games of another one, e.g. to train a larger network; with its weights if the sizes agree.
    Grow(grow::Arguments),
    /// Look at this machine before a first run, and at the state of a run: what is missing, what is wrong, what to do.
    Doctor(doctor::Arguments),
    /// Print or check a run's configuration, for roles that are started one by one.
    Config(config::Arguments),
    /// Answer questions about rules: JSON lines in, JSON lines out.
    Rules(rules::Arguments),
    /// Show a run in the browser: its state, its games, its strength.
    Studio(studio::Arguments),
    /// Play against a network, or another person, at the terminal.
    Play(play::Arguments),
    /// Analyse positions: queries as JSON lines in, searched answers out, many at once.
    Analyze(analyze::Arguments),
    /// Ask a network about a position: its value and its best moves.
    Query(query::Arguments),
    /// A chess engine for any GUI: speaks UCI on standard input and output.
    Uci(uci::Arguments),
    /// An engine of Go, Gomoku, Hex or Othello for any GUI: speaks GTP on standard input and output.
    Gtp(gtp::Arguments),
    /// Count action sequences, to check a rules engine.
    Perft(perft::Arguments),
    /// Play matches between checkpoints, engines and other players, and estimate their strength.
    Arena(arena::Arguments),
    /// Solve an ARC task or another problem with a network of the generator game.
    Solve(solve::Arguments),
    /// A role: play new checkpoints against the best one, and move the label `best` to a better one. `minuet up` starts it, with at most
    /// 3 % of the processor time (rating.share).
    #[command(after_help = "Example:\n  minuet rating --config runs/chess/run.toml")]
    Rating(service::role::Arguments),
    /// A role: search positions for clients, many at once, over gRPC. `minuet analyze` does the same with lines of JSON.
    #[command(
        after_help = "Example:\n  minuet analysis --config runs/chess/run.toml --set analysis.model=runs/chess@best"
    )]
    Analysis(service::role::Arguments),
    /// A role: play games against itself. The program `minuet-actor` does the same; rules in Python need this form.
    #[command(hide = true)]
    Actor(service::role::Arguments),
    /// A role: evaluate positions. The program `minuet-inference-server` does the same; in a release it calls this form.
    #[command(hide = true)]
    InferenceServer(service::role::Arguments),
    /// A role: keep games. The program `minuet-replay-store` does the same; in a release it calls this form.
    #[command(hide = true)]
    ReplayStore(service::role::Arguments),
    /// Look at the stored games of a run, and check them.
    Games(records::Arguments),
    /// Run a benchmark and print its figures; --json prints one object.
    Bench(bench::Arguments),
    /// Compare settings by training with each of them, in lock step, with equal budgets and paired seeds.
    Lab(bench::Arguments),
    /// Compute how many actors, inference servers and learners a run needs, from measured figures.
    Plan(plan::Arguments),
}

/// Runs a command in a Python interpreter that was given a game from outside. `interpreter` is the command line that starts another one
/// with the same rules, for the roles that need them. Ends the process if the arguments cannot be read.
pub fn run_in_python(
    interpreter: Vec<String>,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> ExitCode {
    host::set(interpreter);
    run(arguments)
}

/// Runs a command. The first argument is the name of the program. Ends the process if the arguments cannot be read.
pub fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    service::end_if_output_fails("minuet");
    let command = CommandLine::parse_from(arguments).command;
    let only_prints = match &command {
        Command::Games(arguments) => arguments.only_prints(),
        Command::Config(_)
        | Command::Doctor(_)
        | Command::Perft(_)
        | Command::Plan(_)
        | Command::Query(_)
        | Command::Solve(_) => true,
        _ => false,
    };
    if only_prints {
        // A reader that has seen enough, as in `minuet games list | head`, ends the command without an error.
        sigpipe::reset();
    }
    let done = match command {
        // Roles are commands of this program too, because the program contains all of their parts anyway.
        Command::Rating(arguments) => return role::main_with(Role::Rating, arguments, ::arena::rating::run),
        Command::Analysis(arguments) => {
            return role::main_with(Role::Analysis, arguments, analyze::serve::run);
        }
        Command::Actor(arguments) => return role::main_with(Role::Actor, arguments, actor::run),
        Command::InferenceServer(arguments) => {
            return role::main_with(Role::InferenceServer, arguments, inference_server::run);
        }
        Command::ReplayStore(arguments) => {
            return role::main_with(Role::ReplayStore, arguments, replay_store::run);
        }
        Command::Up(arguments) => up::run(arguments),
        Command::Grow(arguments) => grow::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        Command::Config(arguments) => config::run(arguments),
        Command::Rules(arguments) => rules::run(arguments),
        Command::Studio(arguments) => studio::run(arguments),
        Command::Play(arguments) => play::run(arguments),
        Command::Analyze(arguments) => analyze::run(arguments),
        Command::Query(arguments) => query::run(arguments),
        Command::Uci(arguments) => uci::run(arguments),
        Command::Gtp(arguments) => gtp::run(arguments),
        Command::Perft(arguments) => perft::run(arguments),
        Command::Arena(arguments) => arena::run(arguments),
        Command::Solve(arguments) => solve::run(arguments),
        Command::Games(arguments) => records::run(arguments),
        Command::Bench(arguments) => bench::run(None, arguments),
        Command::Lab(arguments) => bench::run(Some("lab"), arguments),
        Command::Plan(arguments) => plan::run(arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("minuet: {}", service::plain_lines(&format!("{error:#}")));
            exit_code(&error).into()
        }
    }
}

/// Returns 2 for an error of the arguments or of a configuration, 3 for damaged games, 4 for results that are not all good, and 1 for
/// other errors.
fn exit_code(error: &anyhow::Error) -> u8 {
    let is_bad_usage = error.chain().any(|cause| {
        cause.is::<BadUsage>()
            || cause.is::<ConfigError>()
            || cause.is::<UnknownGame>()
            || cause.is::<StartError>()
            || cause.is::<SpecError>()
            || cause.is::<NoModelName>()
    });
    match error.downcast_ref() {
        _ if is_bad_usage => 2,
        _ if error.is::<Damage>() => 3,
        Some(Failure::NotReproduced(_)) => 4,
        _ if error.is::<solve::Unsolved>() => 4,
        _ => 1,
    }
}
