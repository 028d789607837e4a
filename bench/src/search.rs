//! `minuet bench search`: traversals per second with a uniform evaluator, on one thread.
//!
//! Rates are per second of wall-clock time, and per second of the thread's processor time, which other work on the machine
//! disturbs less. The evaluator gives every legal action the same prior and every state the value 0, so only the search and the
//! rules engine are measured. Games are played move after move with reuse of the subtree, as in self-play. Fresh, gray and
//! terminal visits are counted separately. The *signature* is a fingerprint of all visit counts, so it shows whether the
//! search's behaviour has changed.

use std::{path::Path, time::Instant};

use anyhow::{Context, ensure};
use games::{Action, Game, MoverValue, registry};
use search::{Counters, GameKey, Search, Settings};
use serde::Serialize;

use crate::harness::{self, measure::thread_seconds, report};

/// Arguments of `minuet bench search`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench search --game paco-sako --traversals 4096 --json")]
pub struct Arguments {
    /// Only this game (default: all of them).
    #[arg(long)]
    game: Option<String>,
    /// Traversals per move.
    #[arg(long, default_value_t = 4096)]
    traversals: u32,
    /// Leaves per batch; 1 is serial UCT.
    #[arg(long, default_value_t = 1)]
    leaves: u32,
    /// Moves per round; when a game ends, another one begins.
    #[arg(long, default_value_t = 40)]
    moves: u32,
    /// Number of rounds; results are medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of the benchmark.
#[derive(Serialize)]
struct Report {
    /// Always `search`.
    bench: &'static str,
    traversals_per_move: u32,
    leaves: u32,
    moves: u32,
    rounds: usize,
    games: Vec<Measured>,
}

/// One game's figures.
#[derive(Serialize)]
struct Measured {
    game: &'static str,
    /// Traversals per second of wall-clock time; the median over the rounds, as for all rates.
    traversals_per_second: f64,
    fresh_evaluations_per_second: f64,
    /// Traversals per second of this thread's processor time; null if the system does not report it.
    traversals_per_cpu_second: Option<f64>,
    /// Number of traversals of one round; all rounds have equal counts.
    traversals: u64,
    fresh_evaluations: u64,
    gray_visits: u64,
    terminal_visits: u64,
    collisions: u64,
    unstored: u64,
    /// Mean number of leaves per batch.
    leaves_per_batch: f64,
    /// Largest number of nodes held at once, the bytes in use, and bytes per node.
    nodes: u64,
    bytes_used: u64,
    bytes_per_node: f64,
    /// Memory allocated for the nodes, in bytes.
    bytes: u64,
    /// Fingerprint of all visit counts.
    signature: String,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(
        arguments.rounds > 0 && arguments.moves > 0,
        "--rounds and --moves must be at least 1"
    );
    let settings = Settings {
        visits: arguments.traversals,
        leaves: arguments.leaves,
        ..Settings::default()
    };
    settings.check()?;
    let names = match &arguments.game {
        Some(name) => vec![name.as_str()],
        None => registry::NAMES.to_vec(),
    };
    let mut games = Vec::new();
    for name in names {
        let measure = Measure {
            settings: settings.clone(),
            moves: arguments.moves,
            rounds: arguments.rounds,
        };
        games.push(registry::visit(name, measure)??);
    }
    let report = Report {
        bench: "search",
        traversals_per_move: arguments.traversals,
        leaves: arguments.leaves,
        moves: arguments.moves,
        rounds: arguments.rounds,
        games,
    };
    report::print(&report, arguments.json)
}

struct Measure {
    settings: Settings,
    moves: u32,
    rounds: usize,
}

/// Counts and times of one round.
#[derive(Clone, Debug, Default, PartialEq)]
struct Round {
    counters: Counters,
    batches: u64,
    signature: Signature,
}

impl registry::Visitor for Measure {
    type Output = anyhow::Result<Measured>;

    fn visit<G: Game>(self) -> anyhow::Result<Measured> {
        let mut first: Option<Round> = None;
        let rounds = harness::rounds(self.rounds, || {
            let on_core = || thread_seconds(Path::new("/proc/thread-self"));
            let (began, before) = (Instant::now(), on_core());
            let round = self.round::<G>()?;
            let seconds = began.elapsed().as_secs_f64();
            let on_core = before
                .zip(on_core())
                .map(|(before, after)| (after - before).max(1e-9));
            let first = first.get_or_insert_with(|| round.clone());
            let name = G::name();
            ensure!(*first == round, "two rounds of {name} with the same seed differ");
            Ok((seconds, on_core))
        })?;
        let Round {
            counters,
            batches,
            signature,
        } = first.unwrap_or_default();
        let rate = |count: u64| report::median_of(&rounds, |(seconds, _)| count as f64 / seconds);
        let on_core: Vec<f64> = rounds.iter().filter_map(|(_, on_core)| *on_core).collect();
        Ok(Measured {
            game: G::name(),
            traversals_per_second: rate(counters.visits),
            fresh_evaluations_per_second: rate(counters.evaluations),
            traversals_per_cpu_second: (on_core.len() == self.rounds)
                .then(|| report::median_of(&on_core, |seconds| counters.visits as f64 / seconds)),
            traversals: counters.visits,
            fresh_evaluations: counters.evaluations,
            gray_visits: counters.gray_visits,
            terminal_visits: counters.terminal_visits,
            collisions: counters.collisions,
            unstored: counters.unstored,
            leaves_per_batch: counters.evaluations as f64 / batches.max(1) as f64,
            nodes: counters.nodes,
            bytes_used: counters.bytes_used,
            bytes_per_node: counters.bytes_used as f64 / counters.nodes.max(1) as f64,
            bytes: counters.bytes,
            signature: format!("{:016x}", signature.0),
        })
    }
}

impl Measure {
    fn round<G: Game>(&self) -> anyhow::Result<Round> {
        let mut round = Round::default();
        let mut moves = 0;
        for game in 0.. {
            let state = G::start(&G::Rules::default(), None)?;
            let mut search = Search::new(state, self.settings.clone(), GameKey { run_seed: 1, game });
            while moves < self.moves {
                search.decide(|request, priors| {
                    round.batches += u64::from(request.id.index() == 0);
                    priors.resize(request.legal.len(), 1.0 / request.legal.len() as f32);
                    MoverValue::new(0.0)
                })?;
                let Some(action) = search.choose(1.0) else { break };
                let now = search.counters();
                if now.nodes > round.counters.nodes {
                    round.counters.nodes = now.nodes;
                    round.counters.bytes_used = now.bytes_used;
                }
                round.signature.add(action, &search.decision().visits);
                search.advance(action).context("the search chose it")?;
                moves += 1;
            }
            round.take_in(search.counters());
            if moves >= self.moves {
                break;
            }
        }
        Ok(round)
    }
}

impl Round {
    fn take_in(&mut self, game: Counters) {
        let sum = &mut self.counters;
        sum.visits += game.visits;
        sum.evaluations += game.evaluations;
        sum.gray_visits += game.gray_visits;
        sum.terminal_visits += game.terminal_visits;
        sum.collisions += game.collisions;
        sum.unstored += game.unstored;
        sum.bytes = sum.bytes.max(game.bytes);
    }
}

/// FNV-1a over all visit counts and the actions played.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Signature(u64);

impl Default for Signature {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Signature {
    fn add(&mut self, action: Action, visits: &[u32]) {
        for word in std::iter::once(&action).chain(visits) {
            for byte in word.to_le_bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts add up, and all rounds have equal counts.
    #[test]
    fn counts_add_up_for_every_game() {
        for &name in registry::NAMES {
            let measure = Measure {
                settings: Settings {
                    visits: 60,
                    leaves: 3,
                    ..Settings::default()
                },
                moves: 5,
                rounds: 2,
            };
            let measured = registry::visit(name, measure).unwrap().unwrap();
            assert_eq!(measured.traversals, 300, "{name}");
            let answered = measured.fresh_evaluations + measured.gray_visits + measured.terminal_visits;
            // Evaluations of decision nodes are not traversals.
            assert!((300..=305).contains(&answered), "{name}: {answered}");
            assert!(measured.traversals_per_second > 0.0);
            assert!(measured.nodes >= 60 && measured.bytes >= measured.bytes_used);
            assert_ne!(measured.signature, format!("{:016x}", Signature::default().0));
        }
    }
}
