//! `minuet uci`: a chess engine that any GUI or library drives, by the Universal Chess Interface.
//!
//! | module | what it is for |
//! |---|---|
//! | [`command`] | a line becomes a command |
//! | [`options`] | what can be set |
//! | [`engine`] | the conversation: never waits for the search |
//! | [`setup`] | the position to search, and the game before it |
//! | [`clock`], [`lag`] | how long to think, and what is lost on the way |
//! | [`worker`] | the thread that thinks, with its network and its tree |
//! | [`mate`] | proves short mates |
//! | [`report`], [`score`] | `info` lines |

mod clock;
mod command;
mod engine;
mod lag;
mod mate;
mod options;
mod report;
mod score;
mod setup;
mod worker;

use std::{
    io::{self, ErrorKind},
    sync::mpsc::{self, SyncSender},
    thread,
};

use anyhow::Context as _;

use self::{engine::Engine, options::Options, worker::Event};
use crate::{
    rules::lines::{Line, next_line},
    usage::BadUsage,
};

/// News that may wait for the engine.
const MAX_EVENTS: usize = 1024;

/// Arguments of `minuet uci`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// The network: a run's folder (runs/chess, runs/chess@best), a checkpoint's folder, an .onnx file, an inference
    /// server (http://host:port), or `uniform` for a search without any. A GUI can set it as the option Model.
    #[arg(long, env = "MINUET_MODEL", default_value = "")]
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

/// Talks until the GUI says `quit` or is gone.
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
    // Threads are not joined: one may wait for a line that never comes.
    spawn("uci-worker", move || worker::run(&orders, &news))?;
    spawn("uci-reader", move || read_lines(&events))?;
    match Engine::new(options, jobs, io::stdout()).run(&heard) {
        // The GUI is gone, and wants no more answers.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        talked => talked.context("cannot write"),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let builder = thread::Builder::new().name(name.into());
    builder.spawn(work).map(drop).context("cannot start a thread")
}

/// Reads lines until there are no more, or nobody hears them. What is no text is replaced, what is too long is skipped.
fn read_lines(events: &SyncSender<Event>) {
    let mut input = io::stdin().lock();
    let mut buffer = Vec::new();
    loop {
        let event = match next_line(&mut input, &mut buffer) {
            Ok(Some(Line::Whole(text))) => Event::Line(String::from_utf8_lossy(text).into_owned()),
            Ok(Some(Line::TooLong)) => continue,
            Ok(None) | Err(_) => Event::Closed,
        };
        let is_over = matches!(event, Event::Closed);
        if events.send(event).is_err() || is_over {
            return;
        }
    }
}
