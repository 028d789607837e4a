//! Tasks made from the grammar: always the same, held out of self-play, and in the form of ARC's files.

use std::collections::HashSet;

use games::{
    Game,
    generator::{
        Problem, Rules,
        made::{self, Difficulty, Made},
        task::Task,
    },
};
use sha2::{Digest as _, Sha256};

/// Number of tasks of each difficulty.
const TASKS: u64 = 70;
/// SHA-256 of the files of all tasks, one after the other. It changes only with the grammar or the way of making tasks.
const DIGEST: &str = "d863296d750543c958daf9b65f18edd6208a490b0e8e69d76ac35890f2790035";

fn all() -> impl Iterator<Item = Made> {
    let numbers = |difficulty| (0..TASKS).map(move |number| made::numbered(difficulty, number).unwrap());
    Difficulty::ALL.into_iter().flat_map(numbers)
}

#[test]
fn the_tasks_are_always_the_same() {
    let mut digest = Sha256::new();
    for made in all() {
        let text = made.task.to_json() + "\n";
        assert_eq!(Task::read(&text).unwrap(), made.task);
        digest.update(text);
    }
    assert_eq!(format!("{:x}", digest.finalize()), DIGEST);
}

#[test]
fn every_pair_of_every_task_is_held_out_of_self_play_and_has_a_known_solution() {
    let mut inputs = HashSet::new();
    for Made { task, solutions } in all() {
        assert_eq!(
            (task.train.len(), task.test.len(), task.left_out.len()),
            (3, 1, 0)
        );
        for pair in task.train.iter().chain(&task.test) {
            let problem = pair.problem();
            assert!(matches!(problem, Problem::Pair(..)));
            assert!(problem.is_held_out());
            inputs.insert(problem);
        }
        let problems = task.problems(&Rules::default()).unwrap();
        assert_eq!(problems.len(), solutions.len());
        for ((_, start), solution) in problems.into_iter().zip(&solutions) {
            let mut state = start;
            for &action in solution {
                state.play(action).unwrap();
            }
            assert_eq!(state.ending(), Some("solved"));
            assert!((4..=22).contains(&solution.len()), "{solution:?}");
        }
    }
    assert!(inputs.len() > 800, "{} different pairs", inputs.len());
}
