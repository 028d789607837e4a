//! `minuet bench generator`: number of random problems solved, and lengths of their solutions, by uniform UCT and by a network.
//!
//! A problem of depth k is the rendering of k random moves from the bare start clan, none of them an Oops. All players get the
//! same problems, search settings and visits per move. A problem is played until it is solved, an illegal mark is made, or
//! after 64 moves.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use arena::players::solver::{self, Attempt};
use games::{
    Game,
    generator::{GeneratorGame, Rules},
};
use search::{Draws, GameKey, Purpose};
use serde::Serialize;

use crate::harness::report;

/// Number of problems in progress at the same time.
const AT_ONCE: usize = 32;

/// Arguments of `minuet bench generator`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench generator --model runs/generator --json")]
pub struct Arguments {
    /// Network to compare with uniform UCT, as in `minuet solve`.
    #[arg(long)]
    model: Option<String>,
    /// Depths of the problems.
    #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8])]
    depths: Vec<u32>,
    /// Visits per move.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    visits: Vec<u32>,
    /// Number of problems per depth.
    #[arg(long, default_value_t = 100)]
    problems: u64,
    /// Seed of the problems. A run with another seed has not trained on them.
    #[arg(long, default_value_t = 4_321_000)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of the benchmark.
#[derive(Serialize)]
struct Report {
    /// Always `generator`.
    bench: &'static str,
    problems: u64,
    seed: u64,
    results: Vec<Measured>,
    /// For each depth: problems solved by the network with the fewest visits, divided by problems solved by uniform UCT with
    /// the most. Null without a network, or if uniform UCT solved none.
    few_visits_over_uniform: Vec<Ratio>,
}

#[derive(Serialize)]
struct Ratio {
    depth: u32,
    ratio: Option<f64>,
}

/// Result of one player at one depth and number of visits.
#[derive(Serialize)]
struct Measured {
    /// `uniform`, or the network's name in the arguments.
    player: String,
    depth: u32,
    visits: u32,
    solved: u64,
    solve_rate: f64,
    /// Mean length of the solutions found, in moves, the final mark included; null if there is none.
    mean_length: Option<f64>,
    /// Mean length of the walks that made the solved problems, an upper bound of their shortest solutions.
    mean_known_length: Option<f64>,
    /// Mean number of visits per problem.
    visits_per_problem: f64,
    seconds: f64,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(
        arguments.problems > 0 && !arguments.depths.is_empty() && !arguments.visits.is_empty(),
        "there must be at least one problem, one depth and one number of visits"
    );
    let mut players = vec!["uniform".to_owned()];
    players.extend(arguments.model.clone());
    let mut results = Vec::new();
    for player in &players {
        let source = solver::open(player)?;
        for &depth in &arguments.depths {
            let problems = draw(depth, arguments.problems, arguments.seed)?;
            let starts: Vec<GeneratorGame> = problems.iter().map(|problem| problem.0.clone()).collect();
            for &visits in &arguments.visits {
                let settings = solver::settings(visits);
                settings.check()?;
                let began = Instant::now();
                let attempts = solver::solve(&source, &starts, &settings, arguments.seed, AT_ONCE)?;
                let seconds = began.elapsed().as_secs_f64();
                let known = problems.iter().map(|problem| problem.1);
                results.push(measured(player, (depth, visits), &attempts, known, seconds));
            }
        }
    }
    let few_visits_over_uniform = arguments
        .depths
        .iter()
        .map(|&depth| Ratio {
            depth,
            ratio: ratio(&results, depth, &arguments),
        })
        .collect();
    let report = Report {
        bench: "generator",
        problems: arguments.problems,
        seed: arguments.seed,
        results,
        few_visits_over_uniform,
    };
    report::print(&report, arguments.json, text)
}

/// Draws problems, each with the length of its known solution.
fn draw(depth: u32, count: u64, seed: u64) -> anyhow::Result<Vec<(GeneratorGame, usize)>> {
    (0..count)
        .map(|game| {
            let mut draws = Draws::new(GameKey { run_seed: seed, game }, depth, Purpose::Problem);
            let drawn = GeneratorGame::draw_start(&Rules::default(), depth, &mut |below| draws.below(below));
            let drawn = drawn.with_context(|| format!("no problem of depth {depth}"))?;
            Ok((drawn.start, drawn.solution.len()))
        })
        .collect()
}

fn measured(
    player: &str,
    (depth, visits): (u32, u32),
    attempts: &[Attempt],
    known: impl Iterator<Item = usize>,
    seconds: f64,
) -> Measured {
    let solved: Vec<(&Attempt, usize)> = attempts
        .iter()
        .zip(known)
        .filter(|(attempt, _)| attempt.is_solved())
        .collect();
    let count = solved.len();
    let mean = |sum: usize| (count > 0).then(|| sum as f64 / count as f64);
    Measured {
        player: player.into(),
        depth,
        visits,
        solved: count as u64,
        solve_rate: count as f64 / attempts.len().max(1) as f64,
        mean_length: mean(solved.iter().map(|(attempt, _)| attempt.actions.len()).sum()),
        mean_known_length: mean(solved.iter().map(|(_, known)| known).sum()),
        visits_per_problem: attempts.iter().map(|attempt| attempt.visits).sum::<u64>() as f64
            / attempts.len().max(1) as f64,
        seconds,
    }
}

fn ratio(results: &[Measured], depth: u32, arguments: &Arguments) -> Option<f64> {
    let model = arguments.model.as_ref()?;
    let (few, many) = (arguments.visits.iter().min()?, arguments.visits.iter().max()?);
    let solved = |player: &str, visits: u32| {
        let found = results.iter().find(|measured| {
            measured.player == player && measured.depth == depth && measured.visits == visits
        });
        found.map(|measured| measured.solved as f64)
    };
    let uniform = solved("uniform", *many).filter(|&solved| solved > 0.0)?;
    Some(solved(model, *few)? / uniform)
}

fn text(report: &Report) -> String {
    let mut text = format!("generator, {} problems of each depth\n\n", report.problems);
    text += "depth  visits  solved   moves   known  visits/problem  seconds  player\n";
    let mean = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    for one in &report.results {
        text += &format!(
            "{:>5} {:>7} {:>6.1}% {:>7} {:>7} {:>15.0} {:>8.1}  {}\n",
            one.depth,
            one.visits,
            100.0 * one.solve_rate,
            mean(one.mean_length),
            mean(one.mean_known_length),
            one.visits_per_problem,
            one.seconds,
            one.player
        );
    }
    for ratio in &report.few_visits_over_uniform {
        if let Some(times) = ratio.ratio {
            text += &format!(
                "depth {}: the network at the fewest visits solves {times:.2} times as many as uniform UCT at the most\n",
                ratio.depth
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_problems_are_harder_and_counts_add_up() {
        let solved = |depth, visits| {
            let problems = draw(depth, 20, 7).unwrap();
            let starts: Vec<GeneratorGame> = problems.iter().map(|problem| problem.0.clone()).collect();
            let source = solver::open("uniform").unwrap();
            let attempts = solver::solve(&source, &starts, &solver::settings(visits), 7, 8).unwrap();
            let known = problems.iter().map(|problem| problem.1);
            let one = measured("uniform", (depth, visits), &attempts, known, 1.0);
            assert_eq!(one.solve_rate, one.solved as f64 / 20.0);
            assert!(one.mean_length.is_none_or(|length| length >= 2.0));
            one.solved
        };
        assert!(solved(1, 400) > solved(8, 16));
    }
}
