//! The tasks that come with Minuet: made from the grammar, held out of self-play, and in the form of ARC's files.

#![expect(clippy::disallowed_methods, reason = "the test reads files of the project")]

use std::{collections::HashSet, fs, path::PathBuf};

use games::{
    Game,
    generator::{
        GeneratorGame, Problem, Rules,
        changes::Change,
        made::{self, Difficulty},
        task::Task,
    },
};

/// Number of tasks of each difficulty.
const TASKS: u64 = 70;

fn file(difficulty: Difficulty, number: u64) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tasks");
    root.join(difficulty.name()).join(format!("{number:03}.json"))
}

fn text(difficulty: Difficulty, number: u64) -> String {
    made::shipped(difficulty, number).unwrap().task.to_json() + "\n"
}

#[test]
#[ignore = "writes the tasks; run it when the grammar or the way of making tasks changes"]
fn write_the_tasks() {
    for difficulty in Difficulty::ALL {
        fs::create_dir_all(file(difficulty, 0).parent().unwrap()).unwrap();
        for number in 0..TASKS {
            fs::write(file(difficulty, number), text(difficulty, number)).unwrap();
        }
    }
}

#[test]
fn the_tasks_are_those_that_the_grammar_makes() {
    for difficulty in Difficulty::ALL {
        for number in 0..TASKS {
            let path = file(difficulty, number);
            let found = fs::read_to_string(&path).unwrap();
            assert_eq!(found, text(difficulty, number), "{}", path.display());
        }
    }
}

#[test]
fn every_pair_of_every_task_is_held_out_of_self_play() {
    let mut inputs = HashSet::new();
    let mut tasks = 0;
    for difficulty in Difficulty::ALL {
        for number in 0..TASKS {
            let path = file(difficulty, number);
            let task = Task::read(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(
                (task.train.len(), task.test.len(), task.left_out.len()),
                (3, 1, 0)
            );
            tasks += 1;
            for pair in task.train.iter().chain(&task.test) {
                let problem = pair.problem();
                assert!(matches!(problem, Problem::Pair(..)), "{}", path.display());
                assert!(problem.is_held_out(), "{}", path.display());
                inputs.insert(problem);
            }
        }
    }
    assert_eq!(tasks, 210);
    assert!(inputs.len() > 800, "{} different pairs", inputs.len());
}

/// The known solutions solve what the file poses, and say which changes the rule of a task makes.
#[test]
fn every_pair_has_a_known_solution_of_at_least_the_marks_and_two_moves() {
    let mut kinds = HashSet::new();
    for difficulty in Difficulty::ALL {
        for number in 0..TASKS {
            let task = Task::read(&fs::read_to_string(file(difficulty, number)).unwrap()).unwrap();
            let made = made::shipped(difficulty, number).unwrap();
            assert_eq!(task, made.task);
            let problems = task.problems(&Rules::default()).unwrap();
            assert_eq!(problems.len(), made.solutions.len());
            for ((_, start), solution) in problems.iter().zip(&made.solutions) {
                let mut state = start.clone();
                for &action in solution {
                    let (imp, made) = GeneratorGame::imp_and_move(action);
                    let kind = Change::of(state.clan(), imp, made);
                    assert_eq!(kind.is_none(), made.name().starts_with("MARK"));
                    kinds.extend(kind.filter(|_| state.step_marked()));
                    state.play(action).unwrap();
                }
                assert_eq!(state.ending(), Some("solved"));
                assert!((4..=22).contains(&solution.len()), "{solution:?}");
            }
        }
    }
    let mut found: Vec<&str> = kinds.into_iter().map(Change::name).collect();
    found.sort_unstable();
    assert!(found.len() >= 8, "{found:?}");
}
