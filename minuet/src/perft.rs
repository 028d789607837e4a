//! `minuet perft`: the number of legal action sequences of each length, by the rules that `minuet rules` uses.

use std::time::Instant;

use anyhow::Context;
use clap::builder::PossibleValuesParser;
use games::{Game, catalogue, paco_sako::PacoSako, perft::perft};
use serde_json::json;

use crate::rules::face::{self, Face, FaceVisitor};

/// Arguments of `minuet perft`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet perft --game paco-sako --depth 6")]
pub struct Arguments {
    /// The game.
    #[arg(long, default_value = PacoSako::NAME, value_parser = PossibleValuesParser::new(catalogue::NAMES))]
    game: String,
    /// The position to count from, as text; the game's usual start without it.
    #[arg(long)]
    fen: Option<String>,
    /// The longest sequences to count, in actions.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=30))]
    depth: u8,
    /// Print one JSON object, {"counts":[…]}.
    #[arg(long)]
    json: bool,
}

/// Counts and prints.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let began = Instant::now();
    let counts = face::visit(&arguments.game, Counting(&arguments))??;
    let seconds = began.elapsed().as_secs_f64();
    if arguments.json {
        println!("{}", json!({ "counts": counts }));
        return Ok(());
    }
    for (depth, count) in (1..).zip(&counts) {
        println!("{depth:>5} {count:>20}");
    }
    let nodes: u64 = counts.iter().sum();
    println!(
        "{nodes} nodes in {seconds:.3} s, {:.2} million a second",
        nodes as f64 / seconds / 1e6
    );
    Ok(())
}

struct Counting<'a>(&'a Arguments);

impl FaceVisitor for Counting<'_> {
    type Output = anyhow::Result<Vec<u64>>;

    fn visit<F: Face>(self) -> Self::Output {
        let state = F::Game::start(&F::rules(), self.0.fen.as_deref()).context("--fen")?;
        Ok(perft(&state, self.0.depth.into()))
    }
}
