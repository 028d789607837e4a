//! `minuet bench tasks`: ARC-like tasks solved by uniform UCT and by a network, by difficulty and number of visits.
//!
//! Each pair of a task is a problem: draw the input, mark it as a step, then make the output of it and mark it as complete. The
//! other pairs are its examples, if the network takes them. A task is solved if all its pairs are, those of the test included.
//! Without a folder the tasks are made from the grammar, always the same, and all their pairs are of the sixteenth of problems that
//! self-play never draws (`Problem::is_held_out`).

use std::{
    fs, io,
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

use crate::{generator::solve, harness::report};

/// Tasks of each difficulty that are made.
const TASKS: usize = 70;

/// Arguments of `minuet bench tasks`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  minuet bench tasks --model runs/generator --visits 64,256 --json
  minuet bench tasks --write tasks      write the tasks that are measured, as files of ARC's form")]
pub struct Arguments {
    /// Network to compare with uniform UCT, as in `minuet solve`.
    #[arg(long)]
    model: Option<String>,
    /// Folder with one folder of tasks for each difficulty. [default: 70 tasks of each difficulty, made from the grammar]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Write the made tasks to this folder, and measure nothing.
    #[arg(long, value_name = "FOLDER", conflicts_with = "folder")]
    write: Option<PathBuf>,
    /// Visits per move.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    visits: Vec<u32>,
    /// Only so many tasks of each difficulty, the first ones.
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
}

/// Runs the benchmark.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    ensure!(!arguments.visits.is_empty(), "there must be a number of visits");
    if let Some(folder) = &arguments.write {
        return write(folder, arguments.tasks.unwrap_or(TASKS));
    }
    let sets = match &arguments.folder {
        Some(folder) => read(folder, arguments.tasks.unwrap_or(usize::MAX))?,
        None => made_sets(arguments.tasks.unwrap_or(TASKS))?,
    };
    let mut results = Vec::new();
    for player in std::iter::once("uniform").chain(arguments.model.as_deref()) {
        let network = solver::open(player)?;
        solver::check_pairs(player)?;
        if !network.takes_examples() {
            eprintln!("{player} takes no examples, so it is not shown the other pairs of a task");
        }
        for &visits in &arguments.visits {
            for set in &sets {
                let starts = set.tasks.iter().flatten();
                let starts: Vec<GeneratorGame> = starts.map(|start| network.posed(start)).collect();
                let (attempts, seconds) = solve(&network, &starts, visits, arguments.seed)?;
                results.push(measured((player, visits), set, &attempts, seconds));
            }
        }
    }
    let report = Report {
        bench: "tasks",
        seed: arguments.seed,
        results,
    };
    report::print(&report, arguments.json)
}

/// Reads the first `most` tasks of each difficulty.
fn read(folder: &Path, most: usize) -> anyhow::Result<Vec<Set>> {
    let mut sets = Vec::new();
    for difficulty in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        let mut tasks = Vec::new();
        for file in entries(&difficulty)?.iter().take(most) {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            let task = Task::read(&text).with_context(|| file.display().to_string())?;
            tasks.push(starts(&task).with_context(|| file.display().to_string())?);
        }
        let name = difficulty.file_name().unwrap_or_default();
        sets.push(Set {
            difficulty: name.to_string_lossy().into(),
            tasks,
        });
    }
    ensure!(
        sets.iter().any(|set| !set.tasks.is_empty()),
        "{} has no folders with tasks",
        folder.display()
    );
    Ok(sets)
}

/// Makes `count` tasks of each difficulty.
fn made_sets(count: usize) -> anyhow::Result<Vec<Set>> {
    let set = |difficulty: Difficulty| {
        let tasks = (0..count).map(|number| starts(&made_task(difficulty, number)?));
        Ok(Set {
            difficulty: difficulty.name().into(),
            tasks: tasks.collect::<anyhow::Result<_>>()?,
        })
    };
    Difficulty::ALL.into_iter().map(set).collect()
}

/// Writes `count` tasks of each difficulty, each to a file of its own.
fn write(folder: &Path, count: usize) -> anyhow::Result<()> {
    for difficulty in Difficulty::ALL {
        let folder = folder.join(difficulty.name());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for number in 0..count {
            let file = folder.join(format!("{number:03}.json"));
            let text = made_task(difficulty, number)?.to_json() + "\n";
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    Ok(())
}

fn made_task(difficulty: Difficulty, number: usize) -> anyhow::Result<Task> {
    let made = made::numbered(difficulty, number as u64);
    let made = made.with_context(|| format!("the grammar makes no {} task {number}", difficulty.name()))?;
    Ok(made.task)
}

/// Returns the pairs of a task as problems.
fn starts(task: &Task) -> anyhow::Result<Vec<GeneratorGame>> {
    let problems = task.problems(&Rules::default())?;
    Ok(problems.into_iter().map(|(_, start)| start).collect())
}

/// Returns the paths in a folder, by name.
fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let paths: io::Result<Vec<PathBuf>> = read();
    let mut paths = paths.with_context(|| format!("cannot read {}", folder.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_tasks_are_counted_and_are_the_same_in_files() {
        let sets = made_sets(2).unwrap();
        let names: Vec<&str> = sets.iter().map(|set| set.difficulty.as_str()).collect();
        assert_eq!(names, ["easy", "medium", "hard"]);
        let easy = &sets[0];
        let starts: Vec<GeneratorGame> = easy.tasks.iter().flatten().cloned().collect();
        assert_eq!((easy.tasks.len(), starts.len()), (2, 8));
        let network = solver::open("uniform").unwrap();
        let attempts = solver::solve(&network, &starts, &solver::settings(4), 1, 8).unwrap();
        let one = measured(("uniform", 4), easy, &attempts, 4.0);
        let solved = attempts.iter().filter(|attempt| attempt.is_solved()).count();
        assert_eq!((one.pairs, one.pairs_solved), (8, solved));
        assert!(one.tasks_solved * 4 <= solved && one.seconds_per_pair == 0.5);

        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 3).unwrap();
        let written = read(folder.path(), 2).unwrap();
        let names: Vec<&str> = written.iter().map(|set| set.difficulty.as_str()).collect();
        assert_eq!(names, ["easy", "hard", "medium"]);
        assert_eq!(format!("{:?}", written[0].tasks), format!("{:?}", easy.tasks));
        assert!(
            read(&folder.path().join("easy"), 2).is_err(),
            "a folder of tasks has no difficulties"
        );
    }
}
