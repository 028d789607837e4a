//! Problems with a known solution: random walks from the start clan, drawings from the grammar, and hindsight. Solutions are
//! shortened.

use super::{
    Rules,
    clan::Clan,
    drawings::{self, Draw},
    game::GeneratorGame,
    made,
    moves::{self, Move, imp_and_move},
    problem::{Examples, MarkResult, Problem},
    shorten::shorten,
};
use crate::game::{Action, Drawn};

/// Most moves of a random walk that makes a problem.
pub(super) const MAX_DEPTH: u32 = 48;
/// Number of walks that are tried, since a walk may end at a grid that is not a problem.
const TRIES: usize = 1024;
/// Number of walks that are tried for a held-out problem: few of the lowest levels are held out.
const HELD_OUT_TRIES: usize = 1 << 18;

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A grid.
    Draw,
    /// Two grids.
    Pair,
    /// Two grids, with examples of the same task.
    Task,
}

impl Kind {
    /// Draws a kind by the shares of the rules.
    fn draw(rules: &Rules, draw: &mut Draw<'_>) -> Self {
        let (drawn, pairs) = (draw(100), usize::from(rules.pairs));
        match drawn.checked_sub(pairs) {
            None => Self::Pair,
            Some(rest) if rest < usize::from(rules.tasks) => Self::Task,
            Some(_) => Self::Draw,
        }
    }
}

/// Way in which the programs of a problem are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Making {
    /// By random moves.
    Walk,
    /// By drawings from the grammar ([`drawings`]).
    Drawing,
}

impl Making {
    /// Draws a way by the shares of the rules. Without drawings no number is drawn, so that the problems stay those of
    /// releases that had none.
    fn draw(rules: &Rules, draw: &mut Draw<'_>) -> Self {
        if rules.drawings > 0 && draw(100) < usize::from(rules.drawings) {
            Self::Drawing
        } else {
            Self::Walk
        }
    }

    /// Returns moves from the start clan, at most `most`, and the clan after them.
    fn program(self, most: usize, draw: &mut Draw<'_>) -> (Vec<Action>, Clan) {
        match self {
            Self::Walk => random_walk(Clan::start(), most, draw),
            Self::Drawing => drawings::drawing(most, draw),
        }
    }

    /// Returns moves that change a program, at most `most`, and the clan after them. Walks make as many as they can; other rules
    /// are of any length.
    fn rule(self, program: Clan, most: usize, draw: &mut Draw<'_>) -> (Vec<Action>, Clan) {
        match self {
            Self::Walk => random_walk(program, most, draw),
            Self::Drawing => drawings::rule(program, 1 + draw(most), draw),
        }
    }
}

/// Draws a problem of self-play, or one that is held out of it ([`Problem::is_held_out`]), of a kind and by a way that the rules
/// give: the grid that `level` random moves from the start clan draw, or one from the grammar that takes at most as many. The second
/// grid of a pair is half as many moves further (at least one); a task has examples that the same moves make of other clans
/// ([`made::examples`]). The number of moves is reduced if the solution with its marks would take more than the rules allow. The grid of
/// the start clan is not a problem. `None` if all that were tried end there or are on the other side of the held-out ones, or no
/// problem fits the limit.
pub(super) fn problem(
    rules: &Rules,
    level: u32,
    is_held_out: bool,
    draw: &mut Draw<'_>,
) -> Option<Drawn<GeneratorGame>> {
    let kind = Kind::draw(rules, draw);
    let making = Making::draw(rules, draw);
    let is_pair = kind != Kind::Draw;
    let moves = |depth: u32| {
        if is_pair {
            depth + depth.div_ceil(2) + 2
        } else {
            depth + 1
        }
    };
    let depth = (1..=level.clamp(1, MAX_DEPTH))
        .rev()
        .find(|&depth| moves(depth) <= rules.move_limit)? as usize;
    let tries = if is_held_out { HELD_OUT_TRIES } else { TRIES };
    for _ in 0..tries {
        let (mut solution, program) = making.program(depth, draw);
        let first = program.render();
        if first == Clan::start().render() {
            continue;
        }
        let mut rule = Vec::new();
        let problem = if is_pair {
            let (more, further) = making.rule(program, depth.div_ceil(2), draw);
            let second = further.render();
            if second == first {
                continue;
            }
            solution.push(moves::action(0, Move::MARK_STEP));
            solution.extend(&more);
            rule = more;
            Problem::Pair(first, second)
        } else {
            Problem::Draw(first)
        };
        if problem.is_held_out() != is_held_out {
            continue;
        }
        let examples = match kind {
            Kind::Draw | Kind::Pair => Examples::NONE,
            Kind::Task => made::examples(&program, &rule, &problem, draw),
        };
        if kind == Kind::Task && examples.is_empty() {
            continue;
        }
        solution.push(moves::action(0, Move::MARK_COMPLETE));
        let solution = shorten(&Clan::start(), &problem, solution);
        let start = GeneratorGame::posed(rules, problem)
            .with_examples(examples)
            .ok()?;
        return Some(Drawn { start, solution });
    }
    None
}

/// Makes random moves that do not fail and never lead back. Returns the moves and the last clan.
pub(super) fn random_walk(from: Clan, moves: usize, draw: &mut Draw<'_>) -> (Vec<Action>, Clan) {
    let mut clans = vec![from];
    let mut made = Vec::with_capacity(moves);
    let mut clan = from;
    let mut legal = Vec::new();
    for _ in 0..moves {
        legal.clear();
        clan.strict_moves(0, 0, 0, None, &mut legal);
        legal.retain(|&action| {
            let after = clan.after_action(action);
            after.is_some_and(|after| !clans.contains(&after))
        });
        if legal.is_empty() {
            break;
        }
        let action = legal[draw(legal.len()).min(legal.len() - 1)];
        let Some(after) = clan.after_action(action) else {
            break;
        };
        clan = after;
        made.push(action);
        clans.push(clan);
    }
    (made, clan)
}

/// Returns the problem that the moves of an unsuccessful episode do solve, with that solution. `None` if there is none, and if it is
/// held out of self-play.
///
/// A drawing becomes the drawing of the grid that was drawn last. A pair becomes a pair: its second grid is the one drawn
/// last, its first grid the one at the mark of the step, or, if the step was not marked, the grid after two thirds of the
/// moves, as in [`problem`]. Examples are left out, because the moves follow no rule of theirs. The solution has
/// at most as many actions as the rules allow, so the last moves of a longer episode are left out.
pub(super) fn in_hindsight(
    start: &Clan,
    rules: &Rules,
    posed: &Problem,
    actions: &[Action],
) -> Option<Drawn<GeneratorGame>> {
    let is_pair = matches!(posed, Problem::Pair(..));
    let most = (rules.move_limit as usize).saturating_sub(1 + usize::from(is_pair));
    let mut clans = vec![*start];
    let mut made = Vec::new();
    let mut step = None;
    for &action in actions {
        let (imp, action_made) = imp_and_move(action);
        if action_made == Move::MARK_STEP
            && posed.mark(true, step.is_some(), &clans.last()?.render()) == MarkResult::Step
        {
            step = Some(made.len());
            continue;
        }
        // Other marks have failed.
        if made.len() == most {
            break;
        }
        match clans.last()?.after(imp, action_made) {
            Some(after) => clans.push(after),
            None => break,
        }
        made.push(action);
    }
    let last = clans.last()?.render();
    let problem = if is_pair {
        let step = step.unwrap_or(made.len() - made.len() / 3);
        let first = clans.get(step)?.render();
        if first == last {
            return None;
        }
        made.insert(step, moves::action(0, Move::MARK_STEP));
        Problem::Pair(first, last)
    } else {
        if last == start.render() {
            return None;
        }
        Problem::Draw(last)
    };
    if problem.is_held_out() {
        return None;
    }
    made.push(moves::action(0, Move::MARK_COMPLETE));
    Some(Drawn {
        solution: shorten(start, &problem, made),
        start: GeneratorGame::from_clan(rules, problem, *start),
    })
}
