//! Problems with a known solution: random walks from the start clan, and hindsight.

use super::{
    clan::Clan,
    grid::Grid,
    moves::{self, Move, imp_and_move},
    problem::Problem,
};
use crate::game::Action;

/// Most moves of a random walk that makes a problem.
pub(super) const MAX_DEPTH: u32 = 48;
/// Number of walks that are tried, since a walk may end at a grid that is no problem.
const TRIES: usize = 64;

/// A problem with one solution from the start clan.
#[derive(Clone, Debug)]
pub(super) struct SolvedProblem {
    pub problem: Problem,
    /// Actions of the solution: transformations and marks.
    pub solution: Vec<Action>,
}

/// Draws a problem: the grid that `depth` random moves from the start clan draw. `pairs` percent of the problems are pairs,
/// whose second grid is half as many moves further (at least one). The depth is reduced if the solution with its marks
/// would take more than `limit` moves. The grid of the start clan is not a problem. `None` if all walks end there, or no
/// problem fits the limit.
pub(super) fn problem(
    depth: u32,
    pairs: usize,
    limit: u32,
    draw: &mut dyn FnMut(usize) -> usize,
) -> Option<SolvedProblem> {
    let is_pair = draw(100) < pairs;
    let moves = |depth: u32| {
        if is_pair {
            depth + depth.div_ceil(2) + 2
        } else {
            depth + 1
        }
    };
    let depth = (1..=depth.clamp(1, MAX_DEPTH))
        .rev()
        .find(|&depth| moves(depth) <= limit)? as usize;
    for _ in 0..TRIES {
        let (mut solution, clans) = random_walk(Clan::start(), depth, draw);
        let first = clans.last()?.render();
        if first == Clan::start().render() {
            continue;
        }
        if !is_pair {
            shorten(&mut solution, &clans);
            solution.push(moves::action(0, Move::MARK_COMPLETE));
            return Some(SolvedProblem {
                problem: Problem::Draw(first),
                solution,
            });
        }
        let (more, further) = random_walk(*clans.last()?, depth.div_ceil(2), draw);
        let second = further.last()?.render();
        if second == first {
            continue;
        }
        solution.push(moves::action(0, Move::MARK_STEP));
        solution.extend(more);
        solution.push(moves::action(0, Move::MARK_COMPLETE));
        return Some(SolvedProblem {
            problem: Problem::Pair(first, second),
            solution,
        });
    }
    None
}

/// Makes random moves that do not fail and never lead back. Returns the moves, and all clans from the first to the last.
fn random_walk(from: Clan, moves: usize, draw: &mut dyn FnMut(usize) -> usize) -> (Vec<Action>, Vec<Clan>) {
    let mut clans = vec![from];
    let mut made = Vec::with_capacity(moves);
    let mut clan = from;
    let mut legal = Vec::new();
    for _ in 0..moves {
        legal.clear();
        clan.strict_moves(0, 0, 0, None, &mut legal);
        legal.retain(|&action| {
            let (imp, action) = imp_and_move(action);
            clan.after(imp, action)
                .is_some_and(|after| !clans.contains(&after))
        });
        if legal.is_empty() {
            break;
        }
        let action = legal[draw(legal.len()).min(legal.len() - 1)];
        let (imp, made_move) = imp_and_move(action);
        match clan.after(imp, made_move) {
            Some(after) => clan = after,
            None => break,
        }
        made.push(action);
        clans.push(clan);
    }
    (made, clans)
}

/// Shortens a walk to end at the first clan with the render of the last one.
fn shorten(made: &mut Vec<Action>, clans: &[Clan]) {
    let last = clans.last().map(Clan::render);
    if let Some(at) = clans.iter().position(|clan| Some(clan.render()) == last) {
        made.truncate(at);
    }
}

/// Grid that an unsuccessful episode from `clan` drew last, and the actions that lead to it and mark it as complete. The
/// actions are at most `limit`, so the last transformation of an episode that took `limit` of them is left out. `None` if
/// the grid is that of `clan`.
pub(super) fn in_hindsight(clan: &Clan, actions: &[Action], limit: u32) -> Option<(Grid, Vec<Action>)> {
    let most = limit.saturating_sub(1) as usize;
    let mut clans = vec![*clan];
    let mut made = Vec::new();
    for &action in actions {
        let (imp, action_made) = imp_and_move(action);
        if action_made == Move::MARK_STEP || action_made == Move::MARK_COMPLETE {
            continue;
        }
        if made.len() == most {
            break;
        }
        let Some(after) = clans.last()?.after(imp, action_made) else {
            break;
        };
        made.push(action);
        clans.push(after);
    }
    let grid = clans.last()?.render();
    shorten(&mut made, &clans);
    if made.is_empty() {
        return None;
    }
    made.push(moves::action(0, Move::MARK_COMPLETE));
    Some((grid, made))
}
