//! Pairs of tasks by kind: which changes their known solution makes and how long it is, and what is missing where the search fails.

use std::collections::{BTreeMap, BTreeSet};

use arena::{
    players::solver::{Attempt, wrong_cells},
    statistics::wilson,
};
use games::{
    Action, Game as _,
    generator::{End, GeneratorGame, Move, changes::Change},
};
use serde::Serialize;

/// Longest known solutions of the classes by length, marks included.
const LENGTHS: [usize; 4] = [8, 11, 14, usize::MAX];
/// Names of these classes.
const LENGTH_NAMES: [&str; 4] = [
    "known: to 8 moves",
    "known: 9 to 11",
    "known: 12 to 14",
    "known: 15 and more",
];

/// One-hot values of dots, lines and rectangles.
const PAINTED: [u8; 3] = [3, 4, 5];

/// A pair as it was made: its kinds, and the length of its known solution.
pub(super) struct Known {
    pub kinds: BTreeSet<String>,
    pub length: usize,
}

impl Known {
    /// Plays a known solution and notes which changes it makes to draw the input and, as the rule, to draw the output. `None` if it
    /// does not solve the problem.
    pub fn of(start: &GeneratorGame, solution: &[Action]) -> Option<Self> {
        let mut kinds = BTreeSet::new();
        let mut state = start.clone();
        for &action in solution {
            let (imp, made) = GeneratorGame::imp_and_move(action);
            if let Some(change) = Change::of(state.clan(), imp, made) {
                let part = if state.step_marked() { "rule" } else { "input" };
                kinds.insert(format!("{part}: {}", change.name()));
            }
            if made == Move::MARK_STEP {
                kinds.insert(match painted(&state) {
                    1 => "input: 1 shape".into(),
                    count => format!("input: {count} shapes"),
                });
            }
            state.play(action).ok()?;
        }
        let length = solution.len();
        let class = LENGTHS.iter().position(|&most| length <= most)?;
        kinds.insert(LENGTH_NAMES[class].into());
        (state.end() == Some(End::Solved)).then_some(Self { kinds, length })
    }
}

/// Number of dots, lines and rectangles of the clan.
fn painted(state: &GeneratorGame) -> usize {
    let values = state.clan().values().iter();
    values.filter(|value| PAINTED.contains(value)).count()
}

/// Part of a solution that is missing in a pair that is not solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Missing {
    /// The input grid was never drawn.
    Input,
    /// The input grid was drawn but not marked as a step.
    Step,
    /// The step was marked, but the output grid was never drawn.
    Output,
    /// The output grid was drawn but not marked as complete.
    Complete,
    /// A wrong grid was marked, which ends the attempt.
    WrongMark,
}

impl Missing {
    const ALL: [Self; 5] = [
        Self::Input,
        Self::Step,
        Self::Output,
        Self::Complete,
        Self::WrongMark,
    ];

    /// Returns what is missing. `None` if the attempt is solved.
    pub fn of(attempt: &Attempt) -> Option<Self> {
        let is_drawn = wrong_cells(&attempt.nearest) == 0;
        Some(match attempt.state.end() {
            Some(End::Solved) => return None,
            Some(End::Oops) => Self::WrongMark,
            _ => match (attempt.nearest.step_marked(), is_drawn) {
                (false, false) => Self::Input,
                (false, true) => Self::Step,
                (true, false) => Self::Output,
                (true, true) => Self::Complete,
            },
        })
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Step => "step",
            Self::Output => "output",
            Self::Complete => "complete",
            Self::WrongMark => "wrong mark",
        }
    }
}

/// Pairs of one kind. A pair may be of several kinds.
#[derive(Debug, Serialize)]
pub(super) struct OfKind {
    /// E.g. `rule: rotation`, `input: 2 shapes`, `known: 9 to 11`; `all`.
    kind: String,
    pub pairs: usize,
    pub solved: usize,
    /// Wilson interval of the share that is solved, 95 %.
    interval: [f64; 2],
    /// Mean length of the solutions found, in moves, both marks included; null if there is none.
    mean_length: Option<f64>,
    /// Mean length of the known solutions of the solved pairs; null if there is none.
    mean_known_length_of_solved: Option<f64>,
    /// Mean length of the known solutions of all pairs.
    mean_known_length: f64,
    visits_per_pair: f64,
    /// Seconds of the whole set, shared by visits, because many pairs are solved at the same time.
    seconds_per_pair: f64,
    /// Pairs that are not solved, by what is missing.
    pub missing: BTreeMap<Missing, usize>,
    /// Pairs that are not solved, and whose nearest drawing has another width or height than the grid to be drawn.
    of_other_size: usize,
}

/// Counts the attempts by kind, and all of them. Attempts without a known solution are left out.
pub(super) fn by_kind(attempts: &[Attempt], known: &[Option<Known>], seconds: f64) -> Vec<OfKind> {
    let pairs: Vec<(&Attempt, &Known)> = attempts
        .iter()
        .zip(known)
        .filter_map(|(attempt, known)| Some((attempt, known.as_ref()?)))
        .collect();
    if pairs.is_empty() {
        return Vec::new();
    }
    let visits: u64 = attempts.iter().map(|attempt| attempt.visits).sum();
    let per_visit = seconds / visits.max(1) as f64;
    let kinds: BTreeSet<&String> = pairs.iter().flat_map(|(_, known)| &known.kinds).collect();
    let of = |kind: &String| {
        let own: Vec<_> = pairs
            .iter()
            .filter(|(_, known)| known.kinds.contains(kind))
            .copied()
            .collect();
        of_kind(kind, &own, per_visit)
    };
    std::iter::once(of_kind("all", &pairs, per_visit))
        .chain(kinds.into_iter().map(of))
        .collect()
}

fn of_kind(kind: &str, pairs: &[(&Attempt, &Known)], per_visit: f64) -> OfKind {
    let solved: Vec<_> = pairs.iter().filter(|(attempt, _)| attempt.is_solved()).collect();
    let mut missing = BTreeMap::new();
    for what in pairs.iter().filter_map(|(attempt, _)| Missing::of(attempt)) {
        *missing.entry(what).or_default() += 1;
    }
    let is_of_other_size = |attempt: &Attempt| {
        let state = &attempt.nearest;
        let problem = state.problem();
        let wanted = if state.step_marked() {
            problem.second_target()
        } else {
            problem.target()
        };
        wanted.is_some_and(|grid| grid.size() != state.render().size())
    };
    let mean = |sum: usize| (!solved.is_empty()).then(|| sum as f64 / solved.len() as f64);
    let visits: u64 = pairs.iter().map(|(attempt, _)| attempt.visits).sum();
    let count = pairs.len().max(1) as f64;
    OfKind {
        kind: kind.into(),
        pairs: pairs.len(),
        solved: solved.len(),
        interval: wilson(solved.len() as u64, pairs.len() as u64),
        mean_length: mean(solved.iter().map(|(attempt, _)| attempt.actions.len()).sum()),
        mean_known_length_of_solved: mean(solved.iter().map(|(_, known)| known.length).sum()),
        mean_known_length: pairs.iter().map(|(_, known)| known.length).sum::<usize>() as f64 / count,
        visits_per_pair: visits as f64 / count,
        seconds_per_pair: visits as f64 * per_visit / count,
        missing,
        of_other_size: pairs
            .iter()
            .filter(|(attempt, _)| !attempt.is_solved() && is_of_other_size(attempt))
            .count(),
    }
}

/// Returns the kinds as a table.
pub(super) fn text(kinds: &[OfKind]) -> String {
    let mut text =
        "kind                   solved      interval   moves   known (all)  visits  seconds  not solved, missing\n".to_owned();
    let mean = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
    for one in kinds {
        let mut missing: Vec<String> = Missing::ALL
            .iter()
            .filter_map(|what| Some(format!("{} {}", what.name(), one.missing.get(what)?)))
            .collect();
        if one.of_other_size > 0 {
            missing.push(format!("(of another size {})", one.of_other_size));
        }
        text += &format!(
            "{:<20} {:>8} {:>5.1}-{:>5.1}% {:>7} {:>7} {:>5} {:>7.0} {:>8.2}  {}\n",
            one.kind,
            format!("{}/{}", one.solved, one.pairs),
            100.0 * one.interval[0],
            100.0 * one.interval[1],
            mean(one.mean_length),
            mean(one.mean_known_length_of_solved),
            format!("({:.1})", one.mean_known_length),
            one.visits_per_pair,
            one.seconds_per_pair,
            missing.join(", ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use arena::players::solver::{self, Solver};
    use games::generator::{Problem, Rules};

    use super::*;

    /// Returns the pair of the grids that moves draw before and after the step.
    fn pair(moves: &[(usize, u8)], rule: &[(usize, u8)]) -> (GeneratorGame, Vec<Action>) {
        let mut state = GeneratorGame::posed(&Rules::default(), Problem::Free);
        let mut actions = Vec::new();
        let mut play = |moves: &[(usize, u8)], mark: Move| {
            for &(imp, made) in moves {
                actions.push(GeneratorGame::action(imp, Move(made)));
                state.play(GeneratorGame::action(imp, Move(made))).unwrap();
            }
            actions.push(GeneratorGame::action(0, mark));
            state.render()
        };
        let first = play(moves, Move::MARK_STEP);
        let second = play(rule, Move::MARK_COMPLETE);
        (
            GeneratorGame::posed(&Rules::default(), Problem::Pair(first, second)),
            actions,
        )
    }

    #[test]
    fn the_kinds_are_the_changes_of_input_and_rule_and_what_is_missing_is_told() {
        // A grid of seven columns with a line of two cells; the rule turns the line red and makes it longer.
        let (start, solution) = pair(&[(1, 20), (0, 3), (10, 19)], &[(8, 27), (10, 19)]);
        let known = Known::of(&start, &solution).unwrap();
        let kinds: Vec<&str> = known.kinds.iter().map(String::as_str).collect();
        let expected = [
            "input: 1 shape",
            "input: grid size",
            "input: new shape",
            "input: shape size",
            "known: to 8 moves",
            "rule: colour",
            "rule: shape size",
        ];
        assert_eq!((kinds.as_slice(), known.length), (&expected[..], 7));
        assert!(Known::of(&start, &solution[1..]).is_none());

        // Attempts that end after each prefix of the solution, or by a wrong mark.
        let ended = |count: usize, more: &[Action]| {
            let actions: Vec<Action> = solution[..count].iter().chain(more).copied().collect();
            let (mut state, mut nearest) = (start.clone(), start.clone());
            for &action in &actions {
                state.play(action).unwrap();
                if state.end() != Some(End::Oops) {
                    nearest = state.clone();
                }
            }
            Attempt {
                state,
                nearest,
                actions,
                visits: 10,
            }
        };
        let wrong = GeneratorGame::action(0, Move::MARK_COMPLETE);
        let attempts = [
            ended(2, &[]),
            ended(3, &[]),
            ended(4, &[]),
            ended(6, &[]),
            ended(5, &[wrong]),
            ended(7, &[]),
        ];
        let missing: Vec<Option<Missing>> = attempts.iter().map(Missing::of).collect();
        let expected = [
            Some(Missing::Input),
            Some(Missing::Step),
            Some(Missing::Output),
            Some(Missing::Complete),
            Some(Missing::WrongMark),
            None,
        ];
        assert_eq!(missing, expected);
        let known: Vec<Option<Known>> = attempts.iter().map(|_| Known::of(&start, &solution)).collect();
        let kinds = by_kind(&attempts, &known, 12.0);
        assert_eq!(kinds.len(), 8);
        for one in &kinds {
            assert_eq!((one.pairs, one.solved, one.mean_length), (6, 1, Some(7.0)));
            assert_eq!(one.missing.values().sum::<usize>(), 5);
            assert_eq!((one.visits_per_pair, one.seconds_per_pair), (10.0, 2.0));
        }
        assert!(
            text(&kinds).contains("input 1, step 1, output 1, complete 1, wrong mark 1"),
            "{}",
            text(&kinds)
        );
        let none: Vec<Option<Known>> = attempts.iter().map(|_| None).collect();
        assert!(by_kind(&attempts, &none, 1.0).is_empty());
    }

    #[test]
    fn an_attempt_of_two_moves_lacks_the_input() {
        let (start, _) = pair(&[(1, 20), (2, 20), (0, 3)], &[(8, 27)]);
        let rules = Rules {
            move_limit: 2,
            ..Rules::default()
        };
        let start = GeneratorGame::posed(&rules, start.problem().clone());
        let attempts = solver::solve(&Solver::UNIFORM, &[start], &solver::settings(16), 1, 1).unwrap();
        let missing = Missing::of(&attempts[0]);
        assert!(
            matches!(missing, Some(Missing::Input | Missing::WrongMark)),
            "{missing:?}"
        );
    }
}
