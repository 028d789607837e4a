//! `minuet bench games`: action-perft nodes per second of each rules engine, on one thread.
//!
//! Every round counts from positions whose numbers are known, and a wrong count fails the benchmark.

use std::time::Instant;

use anyhow::ensure;
use clap::builder::PossibleValuesParser;
use games::{
    Game, Notation,
    perft::{KnownPerft, perft, perft_played},
    registry::{self, Visitor},
};
use serde::Serialize;

use crate::harness::{self, report};

/// Arguments of `minuet bench games`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  minuet bench games --game paco-sako --json")]
pub struct Arguments {
    /// Only this game.
    #[arg(long, value_parser = PossibleValuesParser::new(registry::NAMES))]
    game: Option<String>,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    bench: &'static str,
    games: Vec<Rates>,
}

/// Figures of one game.
#[derive(Serialize)]
struct Rates {
    game: &'static str,
    positions: usize,
    /// Nodes of one round: action sequences of all lengths up to each position's depth.
    nodes: u64,
    rounds: u8,
    /// Rate if last actions are counted without being played.
    nodes_per_second: f64,
    /// Rate if last actions are played as well.
    played_nodes_per_second: f64,
}

/// Runs the benchmark and prints the result.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut games = Vec::new();
    for name in registry::NAMES {
        if arguments.game.as_deref().is_none_or(|wanted| wanted == *name) {
            games.extend(registry::visit(name, Measuring(arguments.rounds))??);
        }
    }
    report::print(
        &Report {
            bench: "games",
            games,
        },
        arguments.json,
    )
}

/// Measures one game in this number of rounds. Returns `None` for a game without known perft counts.
struct Measuring(u8);

impl Visitor for Measuring {
    type Output = anyhow::Result<Option<Rates>>;

    fn visit<G: Notation>(self) -> Self::Output {
        let known = G::KNOWN_PERFT;
        if known.is_empty() {
            return Ok(None);
        }
        let starts = known
            .iter()
            .map(|known| G::start(&G::json_rules(), known.position))
            .collect::<Result<Vec<_>, _>>()?;
        let rounds = usize::from(self.0);
        let nodes_per_second = rate(&starts, known, rounds, perft)?;
        let played_nodes_per_second = rate(&starts, known, rounds, perft_played)?;
        Ok(Some(Rates {
            game: G::NAME,
            positions: starts.len(),
            nodes: known.iter().flat_map(|known| known.counts).sum(),
            rounds: self.0,
            nodes_per_second,
            played_nodes_per_second,
        }))
    }
}

/// Returns the median rate of a perft function over all positions, in nodes per second.
fn rate<G: Game>(
    starts: &[G],
    known: &[KnownPerft],
    rounds: usize,
    count: impl Fn(&G, usize) -> Vec<u64>,
) -> anyhow::Result<f64> {
    let mut found = Vec::new();
    let rates = harness::rounds(rounds, || {
        let began = Instant::now();
        found = starts
            .iter()
            .zip(known)
            .map(|(start, known)| count(start, known.counts.len()))
            .collect();
        let nodes: u64 = found.iter().flatten().sum();
        Ok(nodes as f64 / began.elapsed().as_secs_f64())
    })?;
    for ((start, known), counts) in starts.iter().zip(known).zip(&found) {
        ensure!(
            counts == known.counts,
            "perft of {} counts {counts:?}, the known counts are {:?}",
            start.position(),
            known.counts
        );
    }
    Ok(report::median(&rates))
}
