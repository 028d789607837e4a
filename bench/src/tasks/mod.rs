//! `minuet bench tasks`: ARC-like tasks solved by uniform UCT and by a network, by difficulty and number of visits.
//!
//! Each pair of a task is a problem: draw the input, mark it as a step, then make the output of it and mark it as complete. The
//! other pairs are its examples, if the network takes them. A
//! task is solved if all its pairs are, those of the test included. The tasks in `tasks/` are made from the grammar, and all
//! their pairs are of the sixteenth of problems that self-play never draws (`Problem::is_held_out`). Because it is known how they
//! were made, their pairs are counted by kind too ([`kinds`]).

mod kinds;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use arena::{
    players::solver::{self, Attempt},
    statistics::wilson,
};
use games::generator::{
    GeneratorGame, Rules,
    made::{self, Difficulty},
    task::Task,
};
use serde::Serialize;

use crate::harness::{problems, report};
use kinds::{Known, OfKind};

/// Arguments of `minuet bench tasks`.
#[derive(clap::Args)]
#[command(after_help = "Example: minuet bench tasks --model runs/generator --visits 64,256 --json")]
pub struct Arguments {
    /// Network to compare with uniform UCT, as in `minuet solve`.
    #[arg(long)]
    model: Option<String>,
    /// Folder with one folder of tasks for each difficulty.
    #[arg(long, default_value = "tasks")]
    folder: PathBuf,
    /// Visits per move.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    visits: Vec<u32>,
    /// Only so many tasks of each difficulty, the first ones by name.
    #[arg(long)]
    tasks: Option<usize>,
    /// Seed of the searches.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Result of the benchmark.
#[derive(Serialize)]
struct Report {
    /// Always `tasks`.
    bench: &'static str,
    seed: u64,
    results: Vec<Measured>,
    /// The tasks of all difficulties, by kind. Empty if the tasks are not those that come with Minuet.
    kinds: Vec<Kinds>,
}

/// Result of one player at one number of visits, by kind of the pairs.
#[derive(Serialize)]
struct Kinds {
    player: String,
    visits: u32,
    kinds: Vec<OfKind>,
}

/// Result of one player at one difficulty and number of visits.
#[derive(Serialize)]
struct Measured {
    /// `uniform`, or the network's name in the arguments.
    player: String,
    difficulty: String,
    visits: u32,
    tasks: usize,
    tasks_solved: usize,
    pairs: usize,
    pairs_solved: usize,
    /// Wilson interval of the share of pairs that are solved, 95 %.
    pairs_solved_interval: [f64; 2],
    /// Mean length of the solutions found, in moves, both marks included; null if there is none.
    mean_length: Option<f64>,
    seconds_per_pair: f64,
}

/// Tasks of one difficulty, each with its pairs as problems.
struct Set {
    difficulty: String,
    tasks: Vec<Vec<GeneratorGame>>,
    /// Kinds and length of the known solution of each pair of all tasks, in their order.
    known: Vec<Option<Known>>,
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(!arguments.visits.is_empty(), "there must be a number of visits");
    let mut sets = read(&arguments.folder, arguments.tasks.unwrap_or(usize::MAX))?;
    let known: Vec<Option<Known>> = sets.iter_mut().flat_map(|set| set.known.drain(..)).collect();
    let (mut results, mut kinds) = (Vec::new(), Vec::new());
    for player in std::iter::once("uniform").chain(arguments.model.as_deref()) {
        let network = solver::open(player)?;
        solver::check_pairs(player)?;
        if !network.takes_examples() {
            eprintln!("{player} takes no examples, so it is not shown the other pairs of a task");
        }
        for &visits in &arguments.visits {
            let (mut all, mut seconds_of_all) = (Vec::new(), 0.0);
            for set in &sets {
                let starts = set.tasks.iter().flatten();
                let starts: Vec<GeneratorGame> = starts.map(|start| network.posed(start)).collect();
                let (attempts, seconds) = problems::solve(&network, &starts, visits, arguments.seed)?;
                results.push(measured((player, visits), set, &attempts, seconds));
                all.extend(attempts);
                seconds_of_all += seconds;
            }
            kinds.push(Kinds {
                player: player.into(),
                visits,
                kinds: kinds::by_kind(&all, &known, seconds_of_all),
            });
        }
    }
    kinds.retain(|one| !one.kinds.is_empty());
    let report = Report {
        bench: "tasks",
        seed: arguments.seed,
        results,
        kinds,
    };
    report::print(&report, arguments.json, text)
}

/// Reads the first `most` tasks of each difficulty.
fn read(folder: &Path, most: usize) -> anyhow::Result<Vec<Set>> {
    let mut sets = Vec::new();
    for difficulty in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        let (mut tasks, mut known) = (Vec::new(), Vec::new());
        for file in entries(&difficulty)?.iter().take(most) {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let task = Task::read(&text).with_context(|| file.display().to_string())?;
            let starts = task
                .problems(&Rules::default())
                .with_context(|| file.display().to_string())?;
            let starts: Vec<GeneratorGame> = starts.into_iter().map(|(_, start)| start).collect();
            known.extend(known_of(file, &task, &starts));
            tasks.push(starts);
        }
        sets.push(Set {
            difficulty: difficulty
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            tasks,
            known,
        });
    }
    ensure!(
        sets.iter().any(|set| !set.tasks.is_empty()),
        "{} has no folders with tasks",
        folder.display()
    );
    Ok(sets)
}

/// Returns what is known of each pair of a task, if it is one of those that come with Minuet: these can be made again.
fn known_of(file: &Path, task: &Task, starts: &[GeneratorGame]) -> Vec<Option<Known>> {
    let named = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
    let made = || {
        let folder = named(file.parent()?)?;
        let difficulty = Difficulty::ALL.into_iter().find(|one| one.name() == folder)?;
        made::shipped(difficulty, named(file)?.parse().ok()?).filter(|made| made.task == *task)
    };
    match made() {
        Some(made) => {
            let solved = starts.iter().zip(&made.solutions);
            solved
                .map(|(start, solution)| Known::of(start, solution))
                .collect()
        }
        None => starts.iter().map(|_| None).collect(),
    }
}

/// Returns the paths in a folder, by name.
fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        paths.push(entry.with_context(unreadable)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn measured((player, visits): (&str, u32), set: &Set, attempts: &[Attempt], seconds: f64) -> Measured {
    let mut rest = attempts;
    let mut tasks_solved = 0;
    for task in &set.tasks {
        let (own, others) = rest.split_at(task.len().min(rest.len()));
        tasks_solved += usize::from(own.iter().all(Attempt::is_solved));
        rest = others;
    }
    let solved = attempts.iter().filter(|attempt| attempt.is_solved());
    let (pairs, pairs_solved) = (attempts.len(), solved.clone().count());
    let moves: usize = solved.map(|attempt| attempt.actions.len()).sum();
    Measured {
        player: player.into(),
        difficulty: set.difficulty.clone(),
        visits,
        tasks: set.tasks.len(),
        tasks_solved,
        pairs,
        pairs_solved,
        pairs_solved_interval: wilson(pairs_solved as u64, pairs as u64),
        mean_length: (pairs_solved > 0).then(|| moves as f64 / pairs_solved as f64),
        seconds_per_pair: seconds / pairs.max(1) as f64,
    }
}

fn text(report: &Report) -> String {
    let mut text =
        "difficulty  visits  tasks solved  pairs solved      interval   moves  seconds/pair  player\n"
            .to_owned();
    for one in &report.results {
        let moves = one.mean_length.map_or("-".into(), |mean| format!("{mean:.2}"));
        text += &format!(
            "{:<10} {:>7} {:>13} {:>13} {:>5.1}-{:>5.1}% {:>7} {:>13.2}  {}\n",
            one.difficulty,
            one.visits,
            format!("{}/{}", one.tasks_solved, one.tasks),
            format!("{}/{}", one.pairs_solved, one.pairs),
            100.0 * one.pairs_solved_interval[0],
            100.0 * one.pairs_solved_interval[1],
            moves,
            one.seconds_per_pair,
            one.player
        );
    }
    for one in &report.kinds {
        text += &format!(
            "\n{}, {} visits: pairs by kind; one may be of several kinds\n",
            one.player, one.visits
        );
        text += &kinds::text(&one.kinds);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_that_come_with_minuet_are_read_and_counted() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tasks");
        let sets = read(&folder, 2).unwrap();
        let names: Vec<&str> = sets.iter().map(|set| set.difficulty.as_str()).collect();
        assert_eq!(names, ["easy", "hard", "medium"]);
        let easy = &sets[0];
        let starts: Vec<GeneratorGame> = easy.tasks.iter().flatten().cloned().collect();
        assert_eq!((easy.tasks.len(), starts.len()), (2, 8));
        assert!(
            sets.iter()
                .all(|set| set.known.len() == 8 && set.known.iter().all(Option::is_some))
        );
        let network = solver::open("uniform").unwrap();
        let attempts = solver::solve(&network, &starts, &solver::settings(4), 1, 8).unwrap();
        let one = measured(("uniform", 4), easy, &attempts, 4.0);
        let solved = attempts.iter().filter(|attempt| attempt.is_solved()).count();
        assert_eq!((one.pairs, one.pairs_solved), (8, solved));
        assert!(one.tasks_solved * 4 <= solved && one.seconds_per_pair == 0.5);
        assert!(
            read(&folder.join("easy"), 2).is_err(),
            "a folder of tasks has no difficulties"
        );
    }
}
