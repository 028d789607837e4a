//! `minuet query`: evaluates one position with a network and prints its value and its best moves.
//!
//! The network is asked through an inference server, given by its address or by a run that is running; any other network is
//! loaded in this process. The output names the network that answered.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail};
use arena::{
    Player,
    analysis::{Engine, Figures, Job},
    players::{NetworkOptions, Networks, usual_search},
};
use games::{MoverValue, registry};
use launcher::run::addresses::Addresses;
use network::ModelName;
use serde::Serialize;
use serde_json::Value;

use launcher::BadUsage;

/// Arguments of `minuet query`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// The network: an inference server (http://host:port, http://host:port@latest), a run's folder (its server, while it
    /// runs), a checkpoint's folder, an .onnx file, or a game's name for the network that comes with Minuet.
    #[arg(value_name = "NETWORK")]
    network: String,
    /// Moves from the position, in the game's notation, one argument for each turn ("e2 e4").
    moves: Vec<String>,
    /// The position as text (a FEN). [default: the game's usual start]
    #[arg(long, visible_alias = "fen", allow_hyphen_values = true)]
    position: Option<String>,
    /// Number of moves shown.
    #[arg(long, default_value_t = 5)]
    top: usize,
    /// Search with this number of visits instead of evaluating only this position.
    #[arg(long, default_value_t = 0)]
    visits: u32,
    /// Execution provider for a network in this process: auto, cpu, cpu-int8, openvino-f32, openvino-bf16, cuda.
    #[arg(long, default_value = "auto")]
    provider: config::Provider,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "Examples:
  minuet query connect-four 4 4
  minuet query runs/chess e4 e5 Nf3
  minuet query http://127.0.0.1:50051 --fen 'r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1' --json
  minuet query runs/paco-sako 'e2 e4' 'd7 d5' --visits 400";

/// The evaluation of a position, as printed.
#[derive(Serialize)]
struct Answer {
    game: &'static str,
    position: String,
    /// Player to move: `first` or `second`.
    to_move: &'static str,
    /// Version and training step of the network.
    version: String,
    step: u64,
    /// Execution provider of the network.
    provider: String,
    /// Address of the inference server; null if the network ran in this process.
    server: Option<String>,
    /// Value of the position by the network, for the player to move, in [-1, 1]; in games of one player in [0, 1].
    value: f32,
    /// Value of the position after the search; only with `--visits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched_value: Option<f32>,
    visits: u32,
    /// Number of legal moves.
    legal: usize,
    /// The best moves: by prior, or by visits after a search.
    moves: Vec<Move>,
}

/// One legal move.
#[derive(Serialize)]
struct Move {
    /// The move in the game's notation.
    text: String,
    /// The move in the notation of `minuet rules`.
    action: Value,
    prior: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    visits: Option<u32>,
    /// Mean value of the move's visits, for the player to move.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f32>,
}

/// Evaluates the position and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let name = name_of(&arguments.network)?;
    let answer = ask(&name, &arguments)?;
    if arguments.json {
        println!("{}", serde_json::to_string(&answer)?);
    } else {
        print!("{}", service::plain_lines(&text(&answer)));
    }
    Ok(())
}

fn ask(name: &ModelName, arguments: &Arguments) -> anyhow::Result<Answer> {
    let mut networks = Networks::new(NetworkOptions {
        provider: arguments.provider,
        batch: 16,
        ..NetworkOptions::default()
    });
    let network = networks
        .open(name)
        .with_context(|| format!("the network {name} cannot be used"))?;
    let game = registry::find(&network.description().layout.title())?;
    // The rules of self-play, with which the network was trained.
    let variant = game.variant(&game.rules(), None)?;
    let mut state = variant.start(arguments.position.as_deref())?;
    for text in &arguments.moves {
        let fault = |reason: String| BadUsage(format!("{text}: {reason}"));
        for action in state.read_turn(text).map_err(fault)? {
            state.play(action)?;
        }
    }
    if let Some(result) = state.result_text() {
        bail!("the game is over at {}: {result}", state.position());
    }
    let player = Player::searching(game, name.to_string(), network, usual_search(game))?;
    let is_searched = arguments.visits > 0;
    // A search makes at least one visit; without `--visits` only its evaluation of the position is used.
    let player = Arc::new(player);
    let job = Job::new(Arc::clone(&player), state.copy(), String::new(), arguments.visits);
    let engine = Engine::start(1);
    let figures = engine.run([job], |search| Figures::of(search, 0))?;
    let mut figures = figures.into_iter().next().context("the search gave no result")?;
    if !is_searched {
        figures
            .rows
            .sort_by(|one, other| other.prior.total_cmp(&one.prior));
    }
    let network = player.network().context("the player has a network")?;
    let description = network.description();
    Ok(Answer {
        game: game.name,
        position: state.position(),
        to_move: ["first", "second"][figures.mover.index()],
        version: description.version.clone(),
        step: description.step,
        provider: description.provider.clone(),
        server: match name {
            ModelName::Server { address, .. } => Some(address.clone()),
            _ => None,
        },
        value: figures.evaluation.get(),
        searched_value: is_searched.then(|| figures.value.get()),
        visits: if is_searched { figures.visits } else { 0 },
        legal: figures.rows.len(),
        moves: figures
            .rows
            .iter()
            .take(arguments.top)
            .map(|row| Move {
                text: state.write_turn(&[row.action]),
                action: state.action_to_json(row.action),
                prior: row.prior,
                visits: is_searched.then_some(row.visits),
                value: row.value.filter(|_| is_searched).map(MoverValue::get),
            })
            .collect(),
    })
}

/// Resolves the name of a network. A run that is running means its inference server.
fn name_of(text: &str) -> anyhow::Result<ModelName> {
    let text = if is_host_and_port(text) {
        format!("http://{text}")
    } else {
        text.to_owned()
    };
    let name: ModelName = text.parse()?;
    let ModelName::Folder { path, version: None } = &name else {
        return Ok(name);
    };
    Ok(match Addresses::of_running(Path::new(path)) {
        Some(addresses) => ModelName::Server {
            address: format!("http://{}", addresses.inference),
            model: None,
        },
        None => name,
    })
}

fn is_host_and_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !registry::NAMES.contains(&host)
            && !host.contains(['/', ':'])
            && port.parse::<u16>().is_ok()
    })
}

fn text(answer: &Answer) -> String {
    let by = match &answer.server {
        Some(server) => format!("asked at {server}, {}", answer.provider),
        None => format!("in this process, {}", answer.provider),
    };
    let mut text = format!(
        "{}: {}\nnetwork {} (step {}), {by}\nvalue {:+.3} for the player to move",
        answer.game, answer.position, answer.version, answer.step, answer.value
    );
    if let Some(value) = answer.searched_value {
        text += &format!(", {value:+.3} after {} visits", answer.visits);
    }
    text += &format!("\n{} of {} moves:\n", answer.moves.len(), answer.legal);
    for one in &answer.moves {
        text += &format!("  {:8} prior {:5.1} %", one.text, 100.0 * one.prior);
        if let (Some(visits), Some(value)) = (one.visits, one.value) {
            text += &format!("   visits {visits:6}   value {value:+.3}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme() {
        assert!(is_host_and_port("127.0.0.1:50051") && is_host_and_port("server:1"));
        for other in [
            "runs/chess",
            "a.onnx",
            "http://x:1",
            "x:",
            ":1",
            "x:99999",
            "a/b:1",
        ] {
            assert!(!is_host_and_port(other), "{other}");
        }
    }
}
