//! `minuet uci`: a chess engine for GUIs and libraries that use the Universal Chess Interface (UCI).
//!
//! | module | purpose |
//! |---|---|
//! | [`command`] | parses lines |
//! | [`options`] | options of the engine |
//! | [`engine`] | the state machine: commands in, answers and orders out |
//! | [`setup`] | the position to search, and the game before it |
//! | [`clock`] | time budget of a move |
//! | [`worker`] | the search thread, with its network and its tree |
//! | [`monitor`] | reports of a running search, and its end |
//! | [`mate`] | proves short mates |
//! | [`report`] | `info` lines |

pub mod clock;
pub mod command;
mod engine;
mod mate;
mod monitor;
mod options;
mod report;
mod setup;
mod worker;

use std::{
    io::{self, ErrorKind},
    sync::{
        Arc, OnceLock,
        mpsc::{self, SyncSender},
    },
    thread,
};

use anyhow::Context as _;
use games::{Game as _, chess::Chess};
use launcher::BadUsage;

use self::{engine::Engine, options::Options, worker::Event};
use crate::rules::lines::{Line, all_was_read, next_line};

/// Capacity of the engine's event queue.
const MAX_EVENTS: usize = 1024;

/// Arguments of `minuet uci`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// The network: a run's folder (runs/chess, runs/chess@best), a checkpoint's folder, an .onnx file, an inference
    /// server (http://host:port), `chess` for the one that comes with Minuet, or `uniform` for a search without any. A GUI can
    /// set it as the option Model.
    #[arg(long, env = "MINUET_MODEL", default_value = Chess::NAME)]
    model: String,
    /// Sets an option as a GUI would, e.g. --option Visits=400. May be given several times.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
}

const HELP: &str = "Examples:
  minuet uci --model runs/chess
  printf 'position startpos moves e2e4\\ngo nodes 400\\n' | minuet uci --model runs/chess

In a GUI, name target/release/minuet as the engine, with the arguments `uci --model <the run's folder>`.
The options Threads, Hash, MultiPV, Move Overhead and others are listed in answer to `uci`.";

/// Runs the engine until the GUI sends `quit` or closes the pipes.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut options = Options {
        model: arguments.model,
        ..Options::default()
    };
    for option in &arguments.options {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| BadUsage(format!("--option {option}: write NAME=VALUE")))?;
        options
            .set(name, value)
            .map_err(|error| BadUsage(format!("--option {option}: {error}")))?;
    }
    let (events, heard) = mpsc::sync_channel(MAX_EVENTS);
    let (jobs, orders) = mpsc::channel();
    let news = events.clone();
    // Threads are not joined, because the reader may wait for ever for a line.
    spawn("uci-worker", move || worker::run(&orders, &news))?;
    let unread = Arc::new(OnceLock::new());
    let failure = Arc::clone(&unread);
    spawn("uci-reader", move || {
        if let Err(error) = read_lines(&events) {
            // The engine ends once it hears of the end, which is told after the error is kept.
            let _ = failure.set(error);
        }
        let _ = events.send(Event::Closed);
    })?;
    match Engine::new(options, jobs, io::stdout()).run(&heard) {
        // The GUI has closed the pipe and needs no more answers.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        talked => talked.context("cannot write"),
    }?;
    all_was_read(&unread)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let builder = thread::Builder::new().name(name.into());
    builder.spawn(work).map(drop).context("cannot start a thread")
}

/// Reads lines until the input or the engine ends. Invalid UTF-8 is replaced, overlong lines are skipped.
fn read_lines(events: &SyncSender<Event>) -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut buffer = Vec::new();
    while let Some(line) = next_line(&mut input, &mut buffer)? {
        if let Line::Whole(text) = line
            && events
                .send(Event::Line(String::from_utf8_lossy(text).into_owned()))
                .is_err()
        {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
