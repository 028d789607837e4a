//! Problems with a solution that is known: random walks from the start clan, and episodes seen in hindsight.

use super::{clan::Clan, game::GeneratorGame, grid::Grid, moves::Move, problem::Problem};
use crate::game::Action;

/// The longest walk that a problem is made by.
pub(super) const MAX_DEPTH: u32 = 48;
/// Walks that are tried before giving up on a problem that is none.
const TRIES: usize = 64;

/// A problem, and one way to solve it from the start clan.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub problem: Problem,
    /// Transformations and marks.
    pub solution: Vec<Action>,
}

/// A problem of generator depth `depth`: what `depth` random moves from the start clan, none of them an Oops, render.
/// A share of `pairs` percent are pairs, whose second grid lies half as many moves further (one at least). The depth is
/// less where the solution, its marks included, would take more than `limit` moves. A grid that the start clan renders
/// already is no problem; `None` where chance gives nothing else, or no problem fits the limit.
pub(super) fn problem(
    depth: u32,
    pairs: usize,
    limit: u32,
    draw: &mut dyn FnMut(usize) -> usize,
) -> Option<Walk> {
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
        let (mut solution, clans) = walk(Clan::start(), depth, draw);
        let first = clans.last()?.render();
        if first == Clan::start().render() {
            continue;
        }
        if !is_pair {
            shorten(&mut solution, &clans);
            solution.push(GeneratorGame::action(0, Move::MARK_COMPLETE));
            return Some(Walk {
                problem: Problem::Draw(first),
                solution,
            });
        }
        let (more, further) = walk(*clans.last()?, depth.div_ceil(2), draw);
        let second = further.last()?.render();
        if second == first {
            continue;
        }
        solution.push(GeneratorGame::action(0, Move::MARK_STEP));
        solution.extend(more);
        solution.push(GeneratorGame::action(0, Move::MARK_COMPLETE));
        return Some(Walk {
            problem: Problem::Pair(first, second),
            solution,
        });
    }
    None
}

/// Random moves that are no Oops and never lead back, and the clans on the way, the first and the last included.
fn walk(from: Clan, moves: usize, draw: &mut dyn FnMut(usize) -> usize) -> (Vec<Action>, Vec<Clan>) {
    let mut clans = vec![from];
    let mut made = Vec::with_capacity(moves);
    let mut clan = from;
    let mut legal = Vec::new();
    for _ in 0..moves {
        legal.clear();
        clan.strict_moves(0, 0, 0, None, &mut legal);
        legal.retain(|&action| {
            let (imp, action) = GeneratorGame::imp_and_move(action);
            clan.after(imp, action)
                .is_some_and(|after| !clans.contains(&after))
        });
        if legal.is_empty() {
            break;
        }
        let action = legal[draw(legal.len()).min(legal.len() - 1)];
        let (imp, made_move) = GeneratorGame::imp_and_move(action);
        match clan.after(imp, made_move) {
            Some(after) => clan = after,
            None => break,
        }
        made.push(action);
        clans.push(clan);
    }
    (made, clans)
}

/// Cuts a way at the first clan that renders what the last one does.
fn shorten(made: &mut Vec<Action>, clans: &[Clan]) {
    let last = clans.last().map(Clan::render);
    if let Some(at) = clans.iter().position(|clan| Some(clan.render()) == last) {
        made.truncate(at);
    }
}

/// What an episode from `clan` that did not solve its problem has solved instead: its last grid, and the way there.
/// The way leaves a move for the mark, so an episode that took all `limit` moves is seen without its last one.
/// `None` where it came to nothing else than it began with.
pub(super) fn in_hindsight(clan: &Clan, actions: &[Action], limit: u32) -> Option<(Grid, Vec<Action>)> {
    let most = limit.saturating_sub(1) as usize;
    let mut clans = vec![*clan];
    let mut made = Vec::new();
    for &action in actions {
        let (imp, action_made) = GeneratorGame::imp_and_move(action);
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
    made.push(GeneratorGame::action(0, Move::MARK_COMPLETE));
    Some((grid, made))
}
