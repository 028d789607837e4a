//! Matches in games of one player: both players get the same held-out problems, and results are counted by kind and level.
//!
//! A pair of games is one problem, which each player tries alone. The game of a player who solves it is won, otherwise it is
//! lost, so a pair is even if both solve it or neither does.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use games::erased::{AnyState, Variant};
use search::{Draws, GameKey, Purpose};
use serde::{Deserialize, Serialize};

use super::{
    openings::{Distinct, Opening, TRIES},
    plan::Plan,
    record::{GameRecord, Result as GameResult},
};

/// Kind and level of a problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProblemClass {
    /// Name of the kind, e.g. `draw`.
    pub kind: String,
    /// Level of difficulty.
    pub level: u32,
}

/// Results of two players on the problems of one class that both have tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassStanding {
    /// Kind and level.
    #[serde(flatten)]
    pub class: ProblemClass,
    /// Number of problems.
    pub problems: u64,
    /// Number of problems that each player solved.
    pub solved: [u64; 2],
    /// Number of problems that both solved.
    pub both: u64,
    /// Moves of the solutions of each player, summed.
    pub moves: [u64; 2],
}

/// Draws a problem of this level for a person or a single game. `None` if the random numbers give none in some tries, and in games
/// without problems.
pub fn draw(variant: &dyn Variant, level: u32, seed: u64) -> Option<Box<dyn AnyState>> {
    let key = GameKey {
        run_seed: seed,
        game: 0,
    };
    let mut draws = Draws::new(key, 0, Purpose::Problem);
    let drawn = (0..TRIES).find_map(|_| variant.draw_start(level, false, &mut |below| draws.below(below)));
    drawn.map(|drawn| drawn.start)
}

/// Draws `count` held-out problems: of each kind that the rules draw and of each level at which players are compared, in turn.
/// The seed alone decides the problems and their order: a larger `count` adds problems at the end. A problem is drawn a second time only if no other
/// is found in some tries.
///
/// # Errors
/// A level has no held-out problem.
pub fn openings(variant: &dyn Variant, seed: u64, count: u64) -> anyhow::Result<Vec<Opening>> {
    let kinds = variant.problem_kinds();
    let classes: Vec<_> = variant
        .game()
        .compared_levels
        .iter()
        .flat_map(|&level| kinds.iter().map(move |kind| (kind, level)))
        .filter(|(kind, _)| kind.share > 0)
        .collect();
    let game = variant.game().name;
    ensure!(
        !classes.is_empty(),
        "{game} is a game of one player without problems of several levels, so that there is nothing to compare its players on"
    );
    let mut distinct = Distinct::new(seed, Purpose::Problem);
    let openings = (0..count)
        .zip(classes.iter().cycle())
        .map(|(number, &(kind, level))| {
            let drawn = distinct.draw(number, |draws| {
                let found = kind
                    .rules
                    .draw_start(level, true, &mut |below| draws.below(below))?;
                Some((found.start.position(), ()))
            });
            let (position, ()) =
                drawn.with_context(|| format!("no held-out problem of level {level} of {game} was found"))?;
            Ok(Opening {
                start: Some(position),
                actions: Vec::new(),
                problem: Some(ProblemClass {
                    kind: kind.name.into(),
                    level,
                }),
            })
        });
    openings.collect()
}

/// Counts the complete pairs of two players by class. Empty if the match is not about problems.
pub(super) fn standings(
    plan: &Plan,
    records: &BTreeMap<u64, GameRecord>,
    pairing: [usize; 2],
) -> Vec<ClassStanding> {
    let mut classes: BTreeMap<ProblemClass, ClassStanding> = BTreeMap::new();
    let first_games = (0..plan.games()).step_by(2);
    for game in first_games.filter(|&game| plan.slot(game).pairing == pairing) {
        let (Some(one), Some(two)) = (records.get(&game), records.get(&(game + 1))) else {
            continue;
        };
        if [one, two]
            .iter()
            .any(|record| record.result == GameResult::Uncounted)
        {
            continue;
        }
        let Some(class) = &plan.opening(plan.slot(game).pair).problem else {
            continue;
        };
        let standing = classes.entry(class.clone()).or_insert_with(|| ClassStanding {
            class: class.clone(),
            problems: 0,
            solved: [0; 2],
            both: 0,
            moves: [0; 2],
        });
        let is_solved = [one, two].map(|record| record.result == GameResult::First);
        standing.problems += 1;
        standing.both += u64::from(is_solved == [true; 2]);
        let players = standing.solved.iter_mut().zip(&mut standing.moves);
        for ((solved, moves), record) in players.zip([one, two]) {
            if record.result == GameResult::First {
                *solved += 1;
                *moves += record.actions.len() as u64;
            }
        }
    }
    classes.into_values().collect()
}

impl ClassStanding {
    /// Results on all problems, whatever their class.
    pub fn sum(classes: &[Self]) -> Option<Self> {
        let mut classes = classes.iter().cloned();
        let first = classes.next()?;
        Some(classes.fold(first, |sum, class| Self {
            class: sum.class,
            problems: sum.problems + class.problems,
            solved: [sum.solved[0] + class.solved[0], sum.solved[1] + class.solved[1]],
            both: sum.both + class.both,
            moves: [sum.moves[0] + class.moves[0], sum.moves[1] + class.moves[1]],
        }))
    }
}
