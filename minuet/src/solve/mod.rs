//! `minuet solve`: draws the grids of an ARC task or of a given problem, by a search with or without a network. On a terminal
//! the search is shown while it runs.

mod live;

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use anyhow::{Context as _, bail};
use arena::players::solver::{self, Attempt, Pairs, wrong_cells};
use games::{
    Action, Game, Notation,
    generator::{Clan, GeneratorGame, Problem, Rules, task::Task},
    terminal::Style,
};
use search::Search;
use serde_json::{Value, json};

use live::Live;

/// Arguments of `minuet solve`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// An ARC task: JSON with `train` and `test` pairs. Every pair whose grids fit 8×8 is a problem: draw the input, mark it,
    /// then make the output of it. A network that takes examples is shown the other pairs.
    #[arg(long, value_name = "FILE", required_unless_present = "problem")]
    task: Option<PathBuf>,
    /// Only this pair of the task, e.g. train:0 or test:1.
    #[arg(long, value_name = "PAIR", requires = "task")]
    pair: Option<String>,
    /// A problem as JSON: "target", or "target" and "second_target", as rows of colours; "examples" of such a pair, as
    /// [{"input":…,"output":…}]; "clan" to begin with another one.
    #[arg(long, value_name = "JSON", conflicts_with = "task")]
    problem: Option<String>,
    /// The network: a run's folder, a checkpoint's folder, an .onnx file, an inference server (http://host:port),
    /// `generator` for the one that comes with Minuet, or `uniform` for a search without a network.
    #[arg(long, default_value = GeneratorGame::NAME)]
    model: String,
    /// Number of visits for each move.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    visits: u32,
    /// Number of moves after which a problem counts as unsolved.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    moves: u32,
    /// Seed of the search's random draws.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object for each problem.
    #[arg(long)]
    json: bool,
}

const HELP: &str = r#"Examples:
  minuet solve --task runs/tasks/easy/007.json --pair test:0
      `minuet bench tasks --write runs/tasks` makes such files
  minuet solve --problem '{"clan":[1,267,521,785],"target":[[1,0,0]]}' --model uniform --visits 20000

Exit status: 0 if all problems are solved, 4 if one is not."#;

/// Error: problems were not solved. Their attempts are printed. The process exits with 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{unsolved} of {posed} problems not solved: --visits and --moves give the search more to try")]
pub struct Unsolved {
    unsolved: usize,
    posed: usize,
}

/// Solves the problems and prints the results.
///
/// # Errors
/// [`Unsolved`] after the results are printed; another error if a problem or the network cannot be used.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    let problems = problems(&arguments)?;
    let network = solver::open(&arguments.model)?;
    if !network.takes_examples() && problems.iter().any(|(_, start)| !start.examples().is_empty()) {
        eprintln!(
            "{} takes no examples, so it is not shown the other pairs of a task",
            arguments.model
        );
    }
    let is_pair = |start: &GeneratorGame| start.problem().second_target().is_some();
    let has_pairs = problems.iter().any(|(_, start)| is_pair(start));
    if has_pairs && solver::check_pairs(&arguments.model)? == Pairs::Unknown {
        eprintln!(
            "{} does not say whether it was trained on pairs of grids; if it was not, its answers to pairs mean little",
            arguments.model
        );
    }
    let settings = solver::settings(arguments.visits);
    let style = Style {
        colour: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        ..Style::default()
    };
    let mut live = Live::new(style).filter(|_| !arguments.json);
    let posed = problems.len();
    let mut unsolved = 0;
    for (name, start) in problems {
        let starts = [network.posed(&start)];
        let mut watch = |search: &Search<GeneratorGame>| {
            if let Some(live) = &mut live {
                live.show(&name, search);
            }
        };
        let attempts = solver::solve_watched(&network, &starts, &settings, arguments.seed, 1, &mut watch);
        if let Some(live) = &mut live {
            live.clear();
        }
        for attempt in attempts? {
            unsolved += usize::from(!attempt.is_solved());
            if arguments.json {
                println!("{}", as_json(&name, &attempt));
            } else {
                print!("{}", as_text(&name, &start, &attempt, style));
            }
        }
    }
    match unsolved {
        0 => Ok(()),
        _ => Err(Unsolved { unsolved, posed }.into()),
    }
}

/// Returns the problems with their names.
fn problems(arguments: &Arguments) -> anyhow::Result<Vec<(String, GeneratorGame)>> {
    let rules = Rules {
        move_limit: arguments.moves,
        ..Rules::default()
    };
    if let Some(text) = &arguments.problem {
        let start = GeneratorGame::start(&rules, Some(text)).context("--problem")?;
        if *start.problem() == Problem::Free {
            bail!("--problem: there is no \"target\"");
        }
        return Ok(vec![("problem".into(), start)]);
    }
    let file = arguments.task.as_deref().context("--task is missing")?;
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let task = Task::read(&text).with_context(|| file.display().to_string())?;
    for reason in &task.left_out {
        eprintln!("left out, {reason}");
    }
    let mut problems = task
        .problems(&rules)
        .with_context(|| file.display().to_string())?;
    if let Some(wanted) = &arguments.pair {
        let names: Vec<String> = problems.iter().map(|(name, _)| name.clone()).collect();
        problems.retain(|(name, _)| name == wanted);
        if problems.is_empty() {
            bail!("--pair {wanted}: the task has {}", names.join(", "));
        }
    }
    Ok(problems)
}

fn moves(actions: &[Action]) -> Vec<Value> {
    let parts = actions.iter().map(|&action| GeneratorGame::imp_and_move(action));
    parts
        .map(|(imp, action)| json!([imp, action.0, action.name()]))
        .collect()
}

/// Returns the clan that was rightly marked as a step. `None` if none was.
fn at_step(start: &GeneratorGame, actions: &[Action]) -> Option<Clan> {
    let mut state = start.clone();
    for &action in actions {
        state.play(action).ok()?;
        if state.step_marked() {
            return Some(*state.clan());
        }
    }
    None
}

fn as_json(name: &str, attempt: &Attempt) -> Value {
    json!({
        "problem": name,
        "solved": attempt.is_solved(),
        "ending": attempt.state.ending(),
        "moves": moves(&attempt.actions),
        "words": attempt.nearest.clan().to_words(),
        "clan": attempt.nearest.clan().packed().collect::<Vec<u32>>(),
        "render": Vec::<Vec<u8>>::from(attempt.nearest.render()),
        "wrong_cells": wrong_cells(&attempt.nearest),
        "visits": attempt.visits,
    })
}

/// Returns the result for people: the grids, the program in words and as a tree with the numbers of its imps, and the moves.
fn as_text(name: &str, start: &GeneratorGame, attempt: &Attempt, style: Style) -> String {
    let verdict = ["not solved", "solved"][usize::from(attempt.is_solved())];
    let count = attempt.actions.len();
    let mut text = format!("{name}: {verdict} in {count} moves, {} visits\n", attempt.visits);
    if !attempt.is_solved() {
        let wrong = wrong_cells(&attempt.nearest);
        text += &format!("The nearest drawing on the way, with {wrong} wrong cells:\n");
    }
    text += &attempt.nearest.draw(style);
    if let Some(input) = at_step(start, &attempt.actions) {
        text += &format!("\nThe program at the step, in words:\n{}", input.to_words());
    }
    text += &format!("\nThe program in words:\n{}", attempt.nearest.clan().to_words());
    text.push('\n');
    for (number, &action) in (1..).zip(&attempt.actions) {
        let (imp, action) = GeneratorGame::imp_and_move(action);
        text += &format!("{number:>3}. {} of imp {imp}\n", action.name());
    }
    text.push('\n');
    text
}
