//! ARC-like tasks made from the grammar: pairs of grids that one program makes by one rule.
//!
//! A program is drawn by random moves. A rule is a list of moves that all pairs share: it turns the program of each input
//! into that of its output. The inputs come from the program by changes of single values, so that size, place and colours
//! differ from pair to pair; each input shows a shape. All pairs are held out of self-play ([`Problem::is_held_out`]). The moves
//! that made a pair are a solution of it, so a task comes with known solutions.

use super::{
    clan::Clan,
    drawings::Draw,
    grid::{ABSENT, Grid},
    moves::{self, Move},
    problem::{Example, Examples, MAX_EXAMPLES, Problem},
    sample::random_walk,
    shorten::shorten,
    task::{Task, TaskPair},
};
use crate::game::Action;

/// Number of pairs of a task. The last one is its test.
const PAIRS: usize = 4;
/// Number of programs and rules that are tried.
const TRIES: usize = 200;
/// Number of inputs that are tried for each pair.
const INPUTS: usize = 400;
/// Most changes of single values from the program to an input.
const CHANGES: usize = 6;

/// Difficulty of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difficulty {
    /// A program of 3 moves, a rule of 1.
    Easy,
    /// A program of 6 moves, a rule of 2.
    Medium,
    /// A program of 10 moves, a rule of 4.
    Hard,
}

impl Difficulty {
    /// All difficulties, the lowest first.
    pub const ALL: [Self; 3] = [Self::Easy, Self::Medium, Self::Hard];

    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Easy => "easy",
            Self::Medium => "medium",
            Self::Hard => "hard",
        }
    }

    /// Returns the number of moves of the program, and of the rule.
    const fn moves(self) -> (usize, usize) {
        match self {
            Self::Easy => (3, 1),
            Self::Medium => (6, 2),
            Self::Hard => (10, 4),
        }
    }
}

/// A task, with a solution of each of its pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The task.
    pub task: Task,
    /// For each pair, the training pairs first: actions from the start clan that draw the input, mark it as a step, draw the
    /// output and mark it as complete. Moves that do not matter are left out.
    pub solutions: Vec<Vec<Action>>,
}

/// Makes the task of this number, of three training pairs and a test pair. It is always the same: each number has random numbers
/// of its own. `None` if no program and rule that were tried made a task.
pub fn numbered(difficulty: Difficulty, number: u64) -> Option<Made> {
    let first = 1000 * difficulty as u64 + 1;
    let mut state = first.wrapping_add(number);
    let mut draw = |below: usize| {
        // A linear congruential generator with the multiplier and the increment of Knuth's MMIX.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % below.max(1)
    };
    (0..TRIES).find_map(|_| attempt(difficulty, &mut draw))
}

fn attempt(difficulty: Difficulty, draw: &mut Draw<'_>) -> Option<Made> {
    let (moves, of_rule) = difficulty.moves();
    let (walk, program) = random_walk(Clan::start(), moves, draw);
    let (rule, result) = random_walk(program, of_rule, draw);
    if rule.len() < of_rule || result.render() == program.render() {
        return None;
    }
    let mut pairs: Vec<TaskPair> = Vec::with_capacity(PAIRS);
    let mut solutions = Vec::with_capacity(PAIRS);
    for _ in 0..INPUTS {
        let (changes, input_program) = varied(&program, draw);
        let Some((input, output)) = pair(&input_program, &rule) else {
            continue;
        };
        let is_new = pairs.iter().all(|known| known.input != input);
        let says_something = input != output && shows_a_shape(&input);
        let problem = Problem::Pair(input, output);
        if is_new && says_something && problem.is_held_out() {
            let way = [walk.as_slice(), changes.as_slice()].concat();
            solutions.push(solution(&way, &rule, &problem)?);
            pairs.push(TaskPair {
                number: pairs.len() % (PAIRS - 1),
                input,
                output,
            });
        }
        if pairs.len() == PAIRS {
            let test = pairs.split_off(PAIRS - 1);
            let task = Task {
                train: pairs,
                test,
                left_out: Vec::new(),
            };
            return Some(Made { task, solutions });
        }
    }
    None
}

/// Returns the solution that makes the program by the moves `way` and the output by the moves `rule`, without those that do not
/// matter. `None` if a move of `way` fails.
fn solution(way: &[Action], rule: &[Action], problem: &Problem) -> Option<Vec<Action>> {
    let mut clans = vec![Clan::start()];
    let mut moves = Vec::with_capacity(way.len() + rule.len() + 2);
    for &action in way {
        let clan = clans.last()?.after_action(action)?;
        moves.push(action);
        // A way that leads back to an earlier clan is cut short there.
        match clans.iter().position(|known| *known == clan) {
            Some(known) => {
                clans.truncate(known + 1);
                moves.truncate(known);
            }
            None => clans.push(clan),
        }
    }
    moves.push(moves::action(0, Move::MARK_STEP));
    moves.extend(rule);
    moves.push(moves::action(0, Move::MARK_COMPLETE));
    Some(shorten(&Clan::start(), problem, moves))
}

/// Returns one to three pairs that the moves `rule` make of `program` with other values. `problem` is the pair of the program itself: the
/// examples have other inputs, and they are held out of self-play only if it is. There are none if no inputs that were tried gave
/// one.
pub(super) fn examples(program: &Clan, rule: &[Action], problem: &Problem, draw: &mut Draw<'_>) -> Examples {
    // Any number, so that a network is trained on tasks with few examples too.
    let wanted = 1 + draw(MAX_EXAMPLES).min(MAX_EXAMPLES - 1);
    let mut found: Vec<Example> = Vec::with_capacity(wanted);
    for _ in 0..INPUTS {
        if found.len() == wanted {
            break;
        }
        let (_, varied) = varied(program, draw);
        let Some((input, output)) = pair(&varied, rule) else {
            continue;
        };
        let is_new = found.iter().all(|known| known.input != input) && problem.target() != Some(&input);
        let is_of_part = Problem::Pair(input, output).is_held_out() == problem.is_held_out();
        if is_new && input != output && is_of_part {
            found.push(Example { input, output });
        }
    }
    Examples::new(found).unwrap_or_default()
}

/// Returns what a program draws, and what it draws after the moves `rule`. `None` if a move fails there.
fn pair(program: &Clan, rule: &[Action]) -> Option<(Grid, Grid)> {
    let mut actions = rule.iter();
    let output = actions.try_fold(*program, |clan, &action| clan.after_action(action))?;
    Some((program.render(), output.render()))
}

/// True if a grid has more than one colour, so that a shape can be seen on the background.
fn shows_a_shape(grid: &Grid) -> bool {
    let mut cells = grid.cells().iter().filter(|&&cell| cell != ABSENT);
    let first = cells.next();
    cells.any(|cell| Some(cell) != first)
}

/// Returns the clan with other values, and the moves that give it them: numbers, colours, directions and turns change, the tree
/// stays.
fn varied(program: &Clan, draw: &mut Draw<'_>) -> (Vec<Action>, Clan) {
    let mut clan = *program;
    let mut made = Vec::with_capacity(CHANGES);
    for _ in 0..draw(CHANGES + 1) {
        let imp = 1 + draw(clan.len() - 1);
        let changes = (Move::INC..=Move::TURN_NEXT).map(Move);
        let fitting: Vec<(Move, Clan)> = changes
            .filter_map(|change| Some((change, clan.after(imp, change)?)))
            .collect();
        if !fitting.is_empty() {
            let (change, after) = fitting[draw(fitting.len()).min(fitting.len() - 1)];
            made.push(moves::action(imp, change));
            clan = after;
        }
    }
    (made, clan)
}
