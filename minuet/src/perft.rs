//! `minuet perft`: counts the legal action sequences of each length, by the rules that `minuet rules` uses.

use std::time::Instant;

use anyhow::Context;
use games::registry;
use serde_json::json;

/// Arguments of `minuet perft`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet perft --game paco-sako --depth 6")]
pub struct Arguments {
    /// Name of the game, with the size of its board if there are several (gomoku:15).
    #[arg(long, default_value = "paco-sako", value_parser = registry::checked)]
    game: String,
    /// Position to count from, as text. Default: the game's usual start.
    #[arg(long, allow_hyphen_values = true)]
    fen: Option<String>,
    /// Length of the longest sequences to count, in actions.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=30))]
    depth: u8,
    /// Print one JSON object, {"counts":[…]}.
    #[arg(long)]
    json: bool,
}

/// Counts, and prints the counts.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let began = Instant::now();
    let game = registry::find(&arguments.game)?;
    let variant = game.variant(&game.json_rules(), None)?;
    let counts = variant
        .perft(arguments.fen.as_deref(), arguments.depth.into())
        .context("--fen")?;
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
