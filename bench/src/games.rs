//! `minuet bench games`: action-perft nodes per second of each rules engine, on one thread.
//!
//! Every round counts from positions whose numbers are known, and a wrong count fails the benchmark. Random games show what a replay of a
//! position costs, and what the game's own look at it (a win by one action, at least).

use std::{hint::black_box, time::Instant};

use anyhow::ensure;
use clap::builder::PossibleValuesParser;
use games::{
    Action, Game, Notation, Symmetry,
    perft::{KnownPerft, perft, perft_played},
    registry::{self, Visitor},
};
use rand::{SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::harness::{self, report};

/// Number of random games.
const LINES: u64 = 200;
/// Largest number of actions of a random game.
const LONGEST: usize = 200;

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
    /// Time in which an action is checked and played, and the row of the position written.
    replay_nanoseconds: f64,
    /// Time of a look at the position.
    look_nanoseconds: f64,
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
        let lines = lines::<G>();
        let replay = |(start, actions): &(G, Vec<Action>)| {
            let (mut state, mut row) = (start.clone(), Vec::new());
            for &action in actions {
                row.clear();
                state.write_row(G::Encoding::default(), Symmetry::IDENTITY, &mut row);
                // The actions are legal.
                let _ = state.play(black_box(action));
            }
            black_box((state.outcome(), row));
        };
        let states: Vec<G> = lines.iter().flat_map(states).collect();
        let replay_nanoseconds = nanoseconds(rounds, states.len(), || lines.iter().for_each(replay))?;
        let look_nanoseconds = nanoseconds(rounds, states.len(), || {
            states.iter().for_each(|state| {
                black_box(black_box(state).known());
            });
        })?;
        Ok(Some(Rates {
            game: G::name(),
            positions: starts.len(),
            nodes: known.iter().flat_map(|known| known.counts).sum(),
            rounds: self.0,
            nodes_per_second,
            played_nodes_per_second,
            replay_nanoseconds,
            look_nanoseconds,
        }))
    }
}

/// Returns the actions of random games, with their start.
fn lines<G: Game>() -> Vec<(G, Vec<Action>)> {
    let lines = (0..LINES).filter_map(|seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let start = G::start(&G::Rules::default(), None).ok()?;
        let (mut state, mut legal, mut actions) = (start.clone(), Vec::new(), Vec::new());
        while actions.len() < LONGEST {
            state.legal_actions(&mut legal);
            let Some(&action) = legal.choose(&mut random) else {
                break;
            };
            state.play_legal(action);
            actions.push(action);
        }
        Some((start, actions))
    });
    lines.collect()
}

/// Returns the position before each action of a game.
fn states<G: Game>((start, actions): &(G, Vec<Action>)) -> Vec<G> {
    let mut state = start.clone();
    let before = |&action: &Action| {
        let before = state.clone();
        state.play_legal(action);
        before
    };
    actions.iter().map(before).collect()
}

/// Returns the median time of one of `count` steps, which `work` makes in a row.
fn nanoseconds(rounds: usize, count: usize, mut work: impl FnMut()) -> anyhow::Result<f64> {
    let times = harness::rounds(rounds, || {
        let began = Instant::now();
        work();
        Ok(began.elapsed().as_secs_f64() * 1e9 / count.max(1) as f64)
    })?;
    Ok(report::median(&times))
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
