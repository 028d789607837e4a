//! `minuet bench generator`: number of random problems solved, and lengths of their solutions, by uniform UCT and by a network.
//!
//! A problem of depth k is the rendering of k random moves from the bare start clan, none of them an Oops. A pair goes half as
//! many moves further. With `--drawings` problems of the depth come from the grammar instead, as with `game.rules.drawings`. All problems are of the sixteenth that self-play never draws, not even in other colours
//! (`Problem::is_held_out`). All players get the same problems, search settings and visits per move. A problem is played until
//! it is solved, a move fails, or after 64 moves.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use arena::{
    players::solver::{self, Attempt, Solver},
    statistics::wilson,
};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use games::{
    Game as _,
    generator::{GeneratorGame, Illegal, Rules},
};
use search::{Draws, GameKey, Purpose};
use serde::Serialize;

use crate::harness::report;

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
    /// Kinds of problems: `draw` (one grid), `pair` (an input grid, then an output grid), `task` (a pair with examples).
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Kind::Draw, Kind::Pair])]
    kinds: Vec<Kind>,
    /// Moves that fail: offered, and the end of the game (`oops`), or not offered (`strict`).
    #[arg(long, default_value = "strict", value_parser = PossibleValuesParser::new(["oops", "strict"]).try_map(illegal))]
    illegal: Illegal,
    /// Percentage of problems drawn from the grammar instead of made by random moves, as game.rules.drawings.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    drawings: u8,
    /// Number of problems per depth and kind.
    #[arg(long, default_value_t = 100)]
    problems: u64,
    /// Seed of the problems. The default gives the fixed set by which networks are compared.
    #[arg(long, default_value_t = 4_321_000)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Draw,
    Pair,
    Task,
}

fn illegal(text: String) -> serde_json::Result<Illegal> {
    serde_json::from_value(text.into())
}

/// Kind and depth of a set of problems.
type Set = (Kind, u32);

/// Result of the benchmark.
#[derive(Serialize)]
struct Report {
    /// Always `generator`.
    bench: &'static str,
    problems: u64,
    seed: u64,
    illegal: Illegal,
    /// Percentage of problems drawn from the grammar.
    drawings: u8,
    results: Vec<Measured>,
    /// For each kind and depth: problems solved by the network with the fewest visits, divided by problems solved by uniform UCT with
    /// the most. Null without a network, or if uniform UCT solved none.
    few_visits_over_uniform: Vec<Ratio>,
}

#[derive(Serialize)]
struct Ratio {
    kind: Kind,
    depth: u32,
    ratio: Option<f64>,
}

/// Result of one player at one depth and number of visits.
#[derive(Serialize)]
struct Measured {
    /// `uniform`, or the network's name in the arguments.
    player: String,
    kind: Kind,
    depth: u32,
    visits: u32,
    solved: u64,
    solve_rate: f64,
    /// Wilson interval of the solve rate, 95 %.
    solve_rate_interval: [f64; 2],
    /// Mean length of the solutions found, in moves, the final mark included; null if there is none.
    mean_length: Option<f64>,
    /// Mean length of the known solutions of the solved problems, an upper bound of their shortest solutions.
    mean_known_length: Option<f64>,
    /// Number of solved problems whose solution is shorter than the known one.
    shorter: u64,
    /// Mean number of visits per problem.
    visits_per_problem: f64,
    seconds: f64,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(
        arguments.problems > 0
            && !arguments.depths.is_empty()
            && !arguments.visits.is_empty()
            && !arguments.kinds.is_empty(),
        "there must be at least one problem, one kind, one depth and one number of visits"
    );
    let mut players = vec!["uniform".to_owned()];
    players.extend(arguments.model.clone());
    let mut results = Vec::new();
    let rules = Rules {
        illegal: arguments.illegal,
        drawings: arguments.drawings,
        ..Rules::default()
    };
    let depths = &arguments.depths;
    let of_kind = |&kind| depths.iter().map(move |&depth| (kind, depth));
    let sets: Vec<Set> = arguments.kinds.iter().flat_map(of_kind).collect();
    for player in &players {
        let network = solver::open(player)?;
        if !network.takes_examples() && arguments.kinds.contains(&Kind::Task) {
            eprintln!("{player} takes no examples, so it is not shown those of a task");
        }
        for &set in &sets {
            let drawn = draw(set, &rules, arguments.problems, arguments.seed)?;
            let starts: Vec<GeneratorGame> = drawn.iter().map(|problem| network.posed(&problem.0)).collect();
            for &visits in &arguments.visits {
                let (attempts, seconds) = solve(&network, &starts, visits, arguments.seed)?;
                let known = drawn.iter().map(|problem| problem.1);
                results.push(measured(player, (set, visits), &attempts, known, seconds));
            }
        }
    }
    let ratio = |&set: &Set| Ratio {
        kind: set.0,
        depth: set.1,
        ratio: ratio(&results, set, &arguments),
    };
    let few_visits_over_uniform = sets.iter().map(ratio).collect();
    let report = Report {
        bench: "generator",
        problems: arguments.problems,
        seed: arguments.seed,
        illegal: arguments.illegal,
        drawings: arguments.drawings,
        results,
        few_visits_over_uniform,
    };
    report::print(&report, arguments.json)
}

/// Number of problems in progress at the same time.
const AT_ONCE: usize = 32;

/// Plays each problem once, with `visits` per move. Returns the attempts in the order of `starts`, and the time in seconds.
///
/// # Errors
/// The number of visits is out of range, or the network does not answer.
pub fn solve(
    solver: &Solver,
    starts: &[GeneratorGame],
    visits: u32,
    seed: u64,
) -> anyhow::Result<(Vec<Attempt>, f64)> {
    let settings = solver::settings(visits);
    settings.check()?;
    let began = Instant::now();
    let attempts = solver::solve(solver, starts, &settings, seed, AT_ONCE)?;
    Ok((attempts, began.elapsed().as_secs_f64()))
}

/// Draws problems, each with the length of its known solution.
fn draw(
    (kind, depth): Set,
    rules: &Rules,
    count: u64,
    seed: u64,
) -> anyhow::Result<Vec<(GeneratorGame, usize)>> {
    let rules = Rules {
        pairs: if kind == Kind::Pair { 100 } else { 0 },
        tasks: if kind == Kind::Task { 100 } else { 0 },
        ..rules.clone()
    };
    (0..count)
        .map(|game| {
            let mut draws = Draws::new(GameKey { run_seed: seed, game }, depth, Purpose::Problem);
            let drawn = GeneratorGame::draw_held_out(&rules, depth, &mut |below| draws.below(below));
            let drawn = drawn.with_context(|| format!("no held-out problem of depth {depth}"))?;
            Ok((drawn.start, drawn.solution.len()))
        })
        .collect()
}

fn measured(
    player: &str,
    ((kind, depth), visits): (Set, u32),
    attempts: &[Attempt],
    known: impl Iterator<Item = usize>,
    seconds: f64,
) -> Measured {
    let attempted = attempts.iter().zip(known);
    let solved: Vec<(&Attempt, usize)> = attempted.filter(|(attempt, _)| attempt.is_solved()).collect();
    let count = solved.len();
    let mean = |sum: usize| (count > 0).then(|| sum as f64 / count as f64);
    let share = |sum: u64| sum as f64 / attempts.len().max(1) as f64;
    Measured {
        player: player.into(),
        kind,
        depth,
        visits,
        solved: count as u64,
        solve_rate: share(count as u64),
        solve_rate_interval: wilson(count as u64, attempts.len() as u64),
        mean_length: mean(solved.iter().map(|(attempt, _)| attempt.actions.len()).sum()),
        mean_known_length: mean(solved.iter().map(|(_, known)| known).sum()),
        shorter: solved
            .iter()
            .filter(|(attempt, known)| attempt.actions.len() < *known)
            .count() as u64,
        visits_per_problem: share(attempts.iter().map(|attempt| attempt.visits).sum()),
        seconds,
    }
}

fn ratio(results: &[Measured], set: Set, arguments: &Arguments) -> Option<f64> {
    let model = arguments.model.as_ref()?;
    let (few, many) = (arguments.visits.iter().min()?, arguments.visits.iter().max()?);
    let solved = |player: &str, visits: u32| {
        let found = results.iter().find(|measured| {
            let same = (measured.kind, measured.depth) == set;
            same && measured.player == player && measured.visits == visits
        });
        found.map(|measured| measured.solved as f64)
    };
    let uniform = solved("uniform", *many).filter(|&solved| solved > 0.0)?;
    Some(solved(model, *few)? / uniform)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_out_problems_are_of_the_requested_kind() {
        for kind in [Kind::Draw, Kind::Pair, Kind::Task] {
            let rules = Rules {
                drawings: 100,
                ..Rules::default()
            };
            for (start, _) in draw((kind, 4), &rules, 10, 3).unwrap() {
                assert!(start.problem().is_held_out());
                assert_eq!(start.problem().second_target().is_some(), kind != Kind::Draw);
                assert_eq!(!start.examples().is_empty(), kind == Kind::Task);
            }
        }
    }

    #[test]
    fn deeper_problems_are_harder_and_counts_add_up() {
        let solved = |depth, visits| {
            let set = (Kind::Draw, depth);
            let rules = Rules {
                illegal: Illegal::Oops,
                ..Rules::default()
            };
            let problems = draw(set, &rules, 20, 7).unwrap();
            assert!(problems.iter().all(|(start, _)| start.problem().is_held_out()));
            let starts: Vec<GeneratorGame> = problems.iter().map(|problem| problem.0.clone()).collect();
            let network = solver::open("uniform").unwrap();
            let attempts = solver::solve(&network, &starts, &solver::settings(visits), 7, 8).unwrap();
            let known = problems.iter().map(|problem| problem.1);
            let one = measured("uniform", (set, visits), &attempts, known, 1.0);
            assert_eq!(one.solve_rate, one.solved as f64 / 20.0);
            assert!(one.mean_length.is_none_or(|length| length >= 2.0));
            assert!(one.shorter <= one.solved);
            one.solved
        };
        assert!(solved(2, 2000) > solved(8, 16));
    }
}
