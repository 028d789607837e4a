//! `minuet gtp`: an engine for GUIs and programs that use the Go Text Protocol (GTP), version 2.
//!
//! GTP has one command at a time, so that one thread reads and another one answers. Only an analysis looks for the next command while it
//! searches.
//!
//! | module | purpose |
//! |---|---|
//! | [`command`] | lines as commands, and answers as lines |
//! | [`board`] | the game under way |
//! | [`time`] | clocks of the players |
//! | [`thinking`] | the search, with its network and its tree |
//! | [`engine`] | what each command does |

mod board;
mod command;
mod engine;
mod thinking;
mod time;

use std::{
    io::{self, ErrorKind},
    sync::{
        Arc, OnceLock,
        mpsc::{self, SyncSender},
    },
    thread,
};

use anyhow::Context as _;
use arena::players::NetworkOptions;
use games::{Game as _, go::Go, registry};
use network::shipped::{self, Level};

use self::{board::Board, engine::Engine, thinking::Thinking};
use crate::{
    network::{UNIFORM, find},
    rules::lines::{Line, all_was_read, next_line},
};

/// Number of commands that may wait to be read.
const MAX_WAITING: usize = 1024;
/// Command in place of a line that is too long, so that the line is answered: there is no such command.
const TOO_LONG: &str = "line-too-long";
/// Number of positions that are evaluated together.
const BATCH: usize = 8;

/// Arguments of `minuet gtp`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Game, with the size of its board if that is not the usual one: go:9, gomoku:15, othello. [default: that of the network,
    /// or go]
    #[arg(long)]
    game: Option<String>,
    /// Network: a run's folder (runs/go, runs/go@best), a checkpoint's folder, an .onnx file, an inference server
    /// (http://host:port), a game's name (the network that comes with Minuet), or `uniform` for a search without any. [default: the
    /// network that comes with Minuet for the board, or else uniform]
    #[arg(long, env = "MINUET_MODEL")]
    model: Option<String>,
    /// Visits for each move. [default: 400, or as many as the time allows once the GUI has set a clock]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    visits: Option<u32>,
    /// Temperature of the choice of moves; 0: the most visited move.
    #[arg(long, default_value_t = 0.0, value_name = "T", value_parser = temperature)]
    temperature: f32,
    /// Execution provider for a network in this process: auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    provider: config::Provider,
}

const HELP: &str = "Examples:
  minuet gtp --model othello --visits 800
  printf 'boardsize 5\\ngenmove b\\nshowboard\\n' | minuet gtp --game go --model uniform

In a GUI (Sabaki, GoGui), name target/release/minuet as the engine, with the arguments `gtp --model <the run's folder>`.
`list_commands` lists the commands. GTP has no letter i, except in Hex: the ninth file of a board is j.";

fn temperature(text: &str) -> Result<f32, String> {
    let number = text.parse().ok();
    let is_allowed = |&number: &f32| (0.0..=100.0).contains(&number);
    number
        .filter(is_allowed)
        .ok_or_else(|| "must be a number from 0 to 100".into())
}

/// Runs the engine until the GUI sends `quit` or closes the pipes.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let named = arguments.game.as_deref().map(registry::find).transpose()?;
    let options = NetworkOptions {
        provider: arguments.provider,
        batch: BATCH,
        ..NetworkOptions::default()
    };
    let model = match (arguments.model, named) {
        (Some(model), _) => model,
        (None, named) => {
            let game = named.map_or_else(|| registry::find(Go::NAME), Ok)?;
            let shipped = shipped::for_board(game, Level::Strong);
            shipped.map_or(UNIFORM, |_| game.name).into()
        }
    };
    let network = find(&model, options)?;
    let game = match (named, &network) {
        (Some(game), _) => game,
        (None, Some(network)) => registry::find(&network.description().layout.title())?,
        (None, None) => registry::find(Go::NAME)?,
    };
    let board = Board::new(game)?;
    let thinking = Thinking::new(model, network, arguments.visits, arguments.temperature);
    thinking.check(game).map_err(anyhow::Error::msg)?;
    let (lines, heard) = mpsc::sync_channel(MAX_WAITING);
    // The reader is not joined, because it may wait for ever for a line.
    let reader = thread::Builder::new().name("gtp-reader".into());
    let unread = Arc::new(OnceLock::new());
    let failure = Arc::clone(&unread);
    reader
        .spawn(move || {
            if let Err(error) = read_lines(&lines) {
                let _ = failure.set(error);
            }
        })
        .context("cannot start a thread")?;
    match Engine::new(board, thinking, heard, io::stdout()).run() {
        // The GUI has closed the pipe and needs no more answers.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        talked => talked.context("cannot write"),
    }?;
    all_was_read(&unread)
}

/// Reads lines until the input or the engine ends. Invalid UTF-8 is replaced.
fn read_lines(lines: &SyncSender<String>) -> io::Result<()> {
    let mut input = io::stdin().lock();
    let mut buffer = Vec::new();
    while let Some(line) = next_line(&mut input, &mut buffer)? {
        let text = match line {
            Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
            Line::TooLong => TOO_LONG.into(),
        };
        if lines.send(text).is_err() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
