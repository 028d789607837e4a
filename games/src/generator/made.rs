//! ARC-like tasks made from the grammar: pairs of grids that one program makes by one rule.
//!
//! A program is drawn by random moves. A rule is a list of moves that all pairs share: it turns the program of each input
//! into that of its output. The inputs come from the program by changes of single values, so that size, place and colours
//! differ from pair to pair; each input shows a shape. All pairs are held out of self-play ([`Problem::is_held_out`]).

use super::{
    clan::Clan,
    examples::{Example, Examples, MAX_EXAMPLES},
    grid::{ABSENT, Grid},
    moves::{Move, imp_and_move},
    problem::Problem,
    sample::random_walk,
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

/// Makes a task of three training pairs and a test pair. `draw(n)` gives a random number below `n`; the same numbers give the
/// same task. `None` if no program and rule that were tried made a task.
pub fn task(difficulty: Difficulty, draw: &mut dyn FnMut(usize) -> usize) -> Option<Task> {
    (0..TRIES).find_map(|_| attempt(difficulty, draw))
}

fn attempt(difficulty: Difficulty, draw: &mut dyn FnMut(usize) -> usize) -> Option<Task> {
    let (moves, of_rule) = difficulty.moves();
    let (_, programs) = random_walk(Clan::start(), moves, draw);
    let program = *programs.last()?;
    let (rule, results) = random_walk(program, of_rule, draw);
    if rule.len() < of_rule || results.last()?.render() == program.render() {
        return None;
    }
    let mut grids: Vec<(Grid, Grid)> = Vec::with_capacity(PAIRS);
    for _ in 0..INPUTS {
        let Some((input, output)) = pair(&program, &rule, draw) else {
            continue;
        };
        let is_new = grids.iter().all(|(known, _)| *known != input);
        let says_something = input != output && shows_a_shape(&input);
        if is_new && says_something && Problem::Pair(input, output).is_held_out() {
            grids.push((input, output));
        }
        if grids.len() == PAIRS {
            let mut pairs = grids.into_iter().map(|(input, output)| TaskPair {
                number: 0,
                input,
                output: Some(output),
            });
            let train = (0..).zip(pairs.by_ref().take(PAIRS - 1));
            let train = train.map(|(number, pair)| TaskPair { number, ..pair }).collect();
            return Some(Task {
                train,
                test: pairs.collect(),
                left_out: Vec::new(),
            });
        }
    }
    None
}

/// Returns one to three pairs that the moves `rule` make of `program` with other values. `problem` is the pair of the program itself: the
/// examples have other inputs, and they are held out of self-play only if it is. There are none if no inputs that were tried gave
/// one.
pub(super) fn examples(
    program: &Clan,
    rule: &[Action],
    problem: &Problem,
    draw: &mut dyn FnMut(usize) -> usize,
) -> Examples {
    // Any number, so that a network meets tasks with few examples too.
    let wanted = 1 + draw(MAX_EXAMPLES).min(MAX_EXAMPLES - 1);
    let mut found: Vec<Example> = Vec::with_capacity(wanted);
    for _ in 0..INPUTS {
        if found.len() == wanted {
            break;
        }
        let Some((input, output)) = pair(program, rule, draw) else {
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

/// Returns the pair of grids that the moves `rule` make of the program with other values. `None` if a move fails there.
fn pair(program: &Clan, rule: &[Action], draw: &mut dyn FnMut(usize) -> usize) -> Option<(Grid, Grid)> {
    let input = varied(program, draw);
    let output = rule.iter().try_fold(input, |clan, &action| {
        let (imp, made) = imp_and_move(action);
        clan.after(imp, made)
    })?;
    Some((input.render(), output.render()))
}

/// True if a grid has more than one colour, so that a shape can be seen on the background.
fn shows_a_shape(grid: &Grid) -> bool {
    let mut cells = grid.cells().iter().filter(|&&cell| cell != ABSENT);
    let first = cells.next();
    cells.any(|cell| Some(cell) != first)
}

/// Returns the clan with other values: numbers, colours, directions and turns change, the tree stays.
fn varied(program: &Clan, draw: &mut dyn FnMut(usize) -> usize) -> Clan {
    let mut clan = *program;
    for _ in 0..draw(CHANGES + 1) {
        let imp = 1 + draw(clan.len() - 1);
        let changes = Move::INC..=Move::TURN_NEXT;
        let fitting: Vec<Clan> = changes.filter_map(|made| clan.after(imp, Move(made))).collect();
        if !fitting.is_empty() {
            clan = fitting[draw(fitting.len()).min(fitting.len() - 1)];
        }
    }
    clan
}
