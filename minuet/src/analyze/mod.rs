//! Positions in, searched answers out: `minuet analyze` with lines of JSON, and the analysis role over gRPC.
//!
//! | module | content |
//! |---|---|
//! | [`query`] | lines and messages as queries and commands, with errors that name the field |
//! | [`answer`] | a search as an answer |
//! | [`review`] | whole games, as JSON and as one HTML file |
//! | [`session`] | the queries of one client: answers, cancels, limits |
//! | [`analysis`] | engine, network and metrics that all clients share |
//! | [`serve`] | the role: the gRPC service `minuet.v1.Analysis` |
//! | [`evaluator`] | the role's network, and its newer versions |

mod analysis;
mod answer;
mod evaluator;
mod query;
mod review;
pub mod serve;
mod session;

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
    sync::{Arc, OnceLock},
    thread,
};

use anyhow::Context as _;
use arena::{
    Player, Spec,
    analysis::Engine,
    players::{NetworkOptions, Networks},
};
use games::{erased::AnyGame, registry};
use network::shipped::{self, Level};
use parking_lot::Mutex;
use serde_json::Value;

use self::{analysis::Analysis, session::Session};
use crate::rules::lines::{Line, MAX_LENGTH, all_was_read, next_line};

/// Positions of the largest batch of one thread.
const BATCH: usize = 96;

/// Arguments of `minuet analyze`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// Game, with the size of its board if that is not the usual one: chess, paco-sako, go:9.
    #[arg(long)]
    game: String,
    /// Network, as a player of `minuet arena`: a run's folder (runs/chess, runs/chess@best), a checkpoint's folder, an .onnx file, an
    /// inference server (http://host:port), a game's name, or `uct` for a search without any. [default: the network that comes with
    /// Minuet, or else uct]
    #[arg(long, env = "MINUET_MODEL")]
    model: Option<Spec>,
    /// Review the games of files instead: PGN, SGF, JSON lines (as `minuet games import` takes them) or archives of `minuet games export`.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    games: Vec<PathBuf>,
    /// Visits for each position of a review.
    #[arg(long, requires = "games", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    visits: u32,
    /// Write the reviews to this HTML file too. It makes no request, so that it can be sent to somebody.
    #[arg(long, requires = "games", value_name = "FILE")]
    report: Option<PathBuf>,
    /// Execution provider for a network in this process: auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    provider: config::Provider,
}

const HELP: &str = r#"A query is a line of JSON, and is answered as soon as its search ends, so that answers come in another order:
  {"id":1,"moves":["e4","e5"],"visits":400}
"moves" are turns as people write them, or actions as in `minuet rules`, from "start" (a position as text; null: the usual one).
"turns" analyses several positions: [0,1,2] are those after no, one and two moves. [default: the last]
"visits" (1 to 4194304) or "time_ms" end a search. [default: 200 visits] "lines" is the number of moves listed. [default: 5]
"priority" orders queries: the largest number first. "report_ms" gives partial answers in this interval.
"rules" switches rules, as in `minuet rules`; "seed" keys the draws among equal moves.
"include" adds "priors" and "values" of all moves, or the whole "tree" (at most 20000 visits in all).
Commands: {"id":2,"do":"cancel","of":1}, {"id":3,"do":"priority","of":1,"priority":9}, {"id":4,"do":"version"},
{"id":5,"do":"models"}, {"id":6,"do":"clear-cache"}.

An answer has "id", "turn", "network", "visits", "fresh" (evaluations by the network), "value" (for the player to move, from -1 to 1),
"proofs" (the share of visits that ended in a proven outcome), "proven" (win, draw or loss) and "moves", the most visited first.
A query that cannot be answered gives {"id":…,"error":"visits: …"}. Queries with equal seeds have equal answers, whatever else runs.

A review is a line of JSON for each game: "values" (for the first player, before each turn and at the end), and "mistakes", the turns that
gave most away, the largest first.

Examples:
  echo '{"id":1,"moves":["e4"],"visits":200}' | minuet analyze --game chess
  minuet analyze --game chess --games games.pgn --report review.html"#;

/// Answers queries until the input ends and all are answered.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let game = registry::find(&arguments.game)?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let usual = || shipped::for_board(game, Level::Strong).map_or("uct", |_| game.name);
    let model = match &arguments.model {
        Some(model) => model.clone(),
        None => usual().parse()?,
    };
    let networks = Networks::new(options(arguments.provider, threads));
    let player = open(game, &model, networks)?;
    if !arguments.games.is_empty() {
        return review::run(&arguments, &player, &Engine::start(threads));
    }
    let output = Mutex::new(BufWriter::new(io::stdout()));
    let session = Session::new(Analysis::start(player, threads), 0, move |message| {
        let mut output = output.lock();
        let written = serde_json::to_writer(&mut *output, &message).map_err(io::Error::from);
        let written = written.and_then(|()| output.write_all(b"\n"));
        written.and_then(|()| output.flush()).is_ok()
    });
    let session = Arc::new(session);
    let unread = Arc::new(OnceLock::new());
    let (failure, reading) = (Arc::clone(&unread), Arc::clone(&session));
    // The reader is not joined: it may wait for a line while nobody reads the answers any more.
    let reader = thread::Builder::new().name("analyze-reader".into());
    reader
        .spawn(move || {
            if let Err(error) = read_lines(&reading) {
                let _ = failure.set(error);
            }
            reading.close();
        })
        .context("cannot start a thread")?;
    session.wait();
    all_was_read(&unread)
}

/// Returns the settings of a network in this process, with a copy for each thread.
fn options(provider: config::Provider, threads: usize) -> NetworkOptions {
    NetworkOptions {
        provider,
        copies: threads,
        batch: BATCH,
        ..NetworkOptions::default()
    }
}

/// Opens a player that analyses a game.
///
/// # Errors
/// The network cannot be used, or is for another game, or the player does not search.
fn open(game: &'static AnyGame, model: &Spec, mut networks: Networks) -> anyhow::Result<Arc<Player>> {
    let player = Player::open(game, model, &mut networks)?;
    player.searches(0)?;
    Ok(Arc::new(player))
}

fn read_lines(session: &Arc<Session>) -> io::Result<()> {
    let mut input = io::BufReader::new(io::stdin().lock());
    let mut buffer = Vec::new();
    while let Some(line) = next_line(&mut input, &mut buffer)? {
        match line {
            Line::Whole(line) => session.read(line),
            Line::TooLong => session.refuse(Value::Null, format!("a line of more than {MAX_LENGTH} bytes")),
        }
    }
    Ok(())
}
