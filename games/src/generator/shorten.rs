//! Shorter solutions: moves that do not matter are taken out of a known solution.
//!
//! The value of a position is discounted by the distance to the nearest solution, so a walk that wanders would teach values
//! that are too low and moves that are not on the best path. A solution is shortened as long as one of these still solves
//! the problem:
//!
//! - the solution without a stretch of moves between two clans with one drawing;
//! - the solution without one move, and without the moves of imps that only exist by it;
//! - the solution without one move, where later moves may concern other imps then;
//! - the solution without two moves that undo each other.
//!
//! When moves are left out, the imps of later moves have other numbers. They are followed by [`Clan::origins`].

use super::{
    clan::Clan,
    grammar::{GROUP, MAX_IMPS},
    grid::Grid,
    moves::{self, Move, imp_and_move},
    problem::{MarkResult, Problem},
};
use crate::game::Action;

/// Shortens a solution of `problem` from the clan `start`. The result solves the problem in as many actions or fewer, and
/// never leads back to an earlier clan unless the given solution does.
pub(super) fn shorten(start: &Clan, problem: &Problem, mut solution: Vec<Action>) -> Vec<Action> {
    while let Some(shorter) = shorter(start, problem, &solution) {
        solution = shorter;
    }
    solution
}

/// Returns the first solution found that is shorter than this one.
fn shorter(start: &Clan, problem: &Problem, solution: &[Action]) -> Option<Vec<Action>> {
    let clans = clans_of(start, solution)?;
    let solved =
        |left_out: &[usize]| without(&clans, solution, left_out).filter(|rest| solves(start, problem, rest));
    // The last action marks the solution as complete.
    let moves = solution.len().saturating_sub(1);
    let renders: Vec<Grid> = clans.iter().map(Clan::render).collect();
    let pairs = || (0..moves).flat_map(|first| (first + 1..moves).map(move |second| [first, second]));
    let as_it_is = |one: usize| {
        let mut rest = solution.to_vec();
        rest.remove(one);
        solves(start, problem, &rest).then_some(rest)
    };
    let stretch = pairs()
        .filter(|&[first, last]| renders[first] == renders[last + 1])
        .find_map(|[first, last]| solved(&(first..=last).collect::<Vec<_>>()));
    stretch
        .or_else(|| (0..moves).find_map(|one| solved(&[one])))
        .or_else(|| (0..moves).find_map(as_it_is))
        .or_else(|| {
            pairs()
                .filter(|&[first, second]| undo_each_other(solution[first], solution[second]))
                .find_map(|pair| solved(&pair))
        })
}

/// Returns the clans before each action, and the last one. `None` if a move fails.
fn clans_of(start: &Clan, actions: &[Action]) -> Option<Vec<Clan>> {
    let mut clans = vec![*start];
    for &action in actions {
        let clan = clans.last()?;
        let (imp, made) = imp_and_move(action);
        clans.push(if is_mark(made) {
            *clan
        } else {
            clan.after(imp, made)?
        });
    }
    Some(clans)
}

fn is_mark(made: Move) -> bool {
    made == Move::MARK_STEP || made == Move::MARK_COMPLETE
}

/// True if the moves may undo each other: opposite changes of a number, a place or a direction, or two exchanges.
fn undo_each_other(first: Action, second: Action) -> bool {
    let [first, second] = [first, second].map(|action| imp_and_move(action).1.0);
    let is_shift = |made: u8| (Move::INC..=Move::MOVE_DOWN).contains(&made);
    let is_turn = |made: u8| made == Move::DIR_CW || made == Move::DIR_CCW;
    (is_shift(first) && is_shift(second))
        || (is_turn(first) && is_turn(second) && first != second)
        || (first == Move::SWAP && second == Move::SWAP)
}

/// Returns the actions without those whose numbers are `left_out`, and without those of imps that do not exist then. `clans`
/// are the clans before each action. `None` if a move fails.
fn without(clans: &[Clan], actions: &[Action], left_out: &[usize]) -> Option<Vec<Action>> {
    let mut rest = Vec::with_capacity(actions.len());
    let mut clan = *clans.first()?;
    // Number in `clan` of each imp of the original clan.
    let mut numbers: Origins = (0..clan.len()).map(Some).collect();
    for (at, (&action, before)) in actions.iter().zip(clans).enumerate() {
        let (imp, made) = imp_and_move(action);
        let own = *numbers.get(imp)?;
        if is_mark(made) {
            if !left_out.contains(&at) {
                rest.push(action);
            }
            continue;
        }
        let origins = before.origins(imp, made);
        let Some(own) = own.filter(|_| !left_out.contains(&at)) else {
            numbers = origins
                .iter()
                .map(|origin| numbers.get((*origin)?).copied().flatten())
                .collect();
            continue;
        };
        let after = clan.after(own, made)?;
        let moved = clan.origins(own, made);
        numbers = renumber(&numbers, &origins, &moved);
        rest.push(moves::action(own, made));
        clan = after;
    }
    Some(rest)
}

/// Returns the numbers after a move that was made in both clans. `origins` belong to the original clan, `moved` to the other
/// one. New imps correspond in their order, if there are as many in both.
fn renumber(numbers: &Origins, origins: &Origins, moved: &Origins) -> Origins {
    let new = |origins: &Origins| -> Vec<usize> {
        let places = origins.iter().enumerate();
        places
            .filter(|(_, origin)| origin.is_none())
            .map(|(at, _)| at)
            .collect()
    };
    let (own, other) = (new(origins), new(moved));
    origins
        .iter()
        .enumerate()
        .map(|(at, origin)| match origin {
            Some(origin) => {
                let before = numbers.get(*origin).copied().flatten()?;
                moved.iter().position(|&place| place == Some(before))
            }
            None if own.len() == other.len() => {
                let place = own.iter().position(|&place| place == at)?;
                other.get(place).copied()
            }
            None => None,
        })
        .collect()
}

/// True if the actions solve the problem, and no move leads back to an earlier clan.
fn solves(start: &Clan, problem: &Problem, actions: &[Action]) -> bool {
    let (mut clan, mut is_marked) = (*start, false);
    let mut seen = vec![(clan, is_marked)];
    for &action in actions {
        let (imp, made) = imp_and_move(action);
        if is_mark(made) {
            match problem.mark(made == Move::MARK_STEP, is_marked, &clan.render()) {
                MarkResult::Solved => return true,
                MarkResult::Oops | MarkResult::Proposed => return false,
                MarkResult::Step => is_marked = true,
            }
        } else {
            match clan.after(imp, made) {
                Some(after) => clan = after,
                None => return false,
            }
        }
        if seen.contains(&(clan, is_marked)) {
            return false;
        }
        seen.push((clan, is_marked));
    }
    false
}

/// Numbers before a move of the imps after it. `None` for a new imp.
pub(super) type Origins = Vec<Option<usize>>;

impl Clan {
    /// Returns the origins of the imps after a move of `imp` that does not fail. A copy is new, and so are the group or
    /// rotation that an imp is put into.
    pub(super) fn origins(&self, imp: usize, made: Move) -> Origins {
        let mut origins: Origins = (0..self.len()).map(Some).collect();
        let end = self.end(imp);
        let insert = |origins: &mut Origins, at: usize, count: usize| {
            drop(origins.splice(at..at, std::iter::repeat_n(None, count.min(MAX_IMPS))));
        };
        match made.0 {
            Move::APPEND_DOT | Move::INSERT_DOT => insert(&mut origins, end, 5),
            Move::APPEND_DOT..=Move::INSERT_RECT => insert(&mut origins, end, 7),
            Move::DELETE => drop(origins.drain(imp..end)),
            Move::DUPLICATE => insert(&mut origins, end, end - imp),
            Move::SWAP if end < self.len() => {
                let next = self.end(end);
                origins[imp..next].rotate_left(end - imp);
            }
            Move::WRAP_GROUP | Move::GROUP_WITH_NEXT => insert(&mut origins, imp, 1),
            Move::WRAP_ROTATION => {
                insert(&mut origins, end, 4);
                insert(&mut origins, imp, 1);
            }
            Move::UNWRAP => {
                if self.values[imp] != GROUP {
                    // Turns and pivot come after the child.
                    drop(origins.drain(end.saturating_sub(4)..end));
                }
                origins.remove(imp);
            }
            Move::DOT_TO_LINE => insert(&mut origins, imp + 5, 2),
            Move::DOT_TO_RECT => insert(&mut origins, imp + 1, 2),
            Move::LINE_TO_DOT => drop(origins.drain(imp + 5..imp + 7)),
            Move::RECT_TO_DOT => drop(origins.drain(imp + 1..imp + 3)),
            _ => {}
        }
        origins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(moves: &[(usize, u8)]) -> (Grid, Vec<Action>) {
        let mut clan = Clan::start();
        let mut actions = Vec::new();
        for &(imp, made) in moves {
            clan = clan.after(imp, Move(made)).unwrap();
            actions.push(moves::action(imp, Move(made)));
        }
        actions.push(moves::action(0, Move::MARK_COMPLETE));
        (clan.render(), actions)
    }

    fn named(actions: &[Action]) -> Vec<(usize, &'static str)> {
        let named = actions.iter().map(|&action| imp_and_move(action));
        named.map(|(imp, made)| (imp, made.name())).collect()
    }

    /// The first dot is hidden by the rectangle that is drawn later, and its colour does not matter. The later moves concern
    /// imps whose numbers are lower without it.
    #[test]
    fn a_hidden_shape_and_all_its_moves_are_left_out() {
        let (target, walk) = play(&[(0, 2), (8, 27), (0, 4), (10, 19), (8, 29), (11, 19), (15, 28)]);
        let short = shorten(&Clan::start(), &Problem::Draw(target), walk);
        let expected = [
            (0, "APPEND_RECT"),
            (5, "INC"),
            (6, "INC"),
            (10, "SET_COLOR_3"),
            (0, "MARK_COMPLETE"),
        ];
        assert_eq!(named(&short), expected);
    }

    #[test]
    fn moves_that_undo_each_other_are_left_out() {
        // The dot goes to the right, the width of the grid falls, and the dot goes back by its leaf x.
        let (target, walk) = play(&[(0, 2), (4, 22), (1, 20), (6, 20)]);
        let short = shorten(&Clan::start(), &Problem::Draw(target), walk);
        let expected = [(0, "APPEND_DOT"), (1, "DEC"), (0, "MARK_COMPLETE")];
        assert_eq!(named(&short), expected);
    }

    #[test]
    fn both_parts_of_a_pair_are_shortened_and_both_marks_stay() {
        let (first, mut walk) = play(&[(0, 2), (8, 27), (8, 28)]);
        walk.pop();
        walk.push(moves::action(0, Move::MARK_STEP));
        let (second, all) = play(&[(0, 2), (8, 27), (8, 28), (3, 26), (3, 29)]);
        walk.extend(&all[3..]);
        let short = shorten(&Clan::start(), &Problem::Pair(first, second), walk);
        let expected = [
            (0, "APPEND_DOT"),
            (8, "SET_COLOR_3"),
            (0, "MARK_STEP"),
            (3, "SET_COLOR_4"),
            (0, "MARK_COMPLETE"),
        ];
        assert_eq!(named(&short), expected);
    }
}

#[cfg(test)]
mod origins_tests {
    use super::*;
    use crate::generator::grammar;

    /// Returns random clans: a walk of 30 moves from the start, by a linear congruential generator (Knuth, MMIX).
    fn walk(mut seed: u64, mut each: impl FnMut(&Clan, usize, Move, &Clan)) {
        let mut clan = Clan::start();
        for _ in 0..30 {
            let mut fitting = Vec::new();
            for imp in 0..clan.len() {
                let moves = (2..38).map(Move);
                fitting.extend(moves.filter_map(|made| Some((imp, made, clan.after(imp, made)?))));
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Every other move changes the tree.
            if seed >> 40 & 1 == 0 {
                fitting.retain(|(_, made, _)| made.0 < Move::INC);
            }
            for (imp, made, after) in &fitting {
                each(&clan, *imp, *made, after);
            }
            let Some(&(_, _, after)) = fitting.get((seed >> 33) as usize % fitting.len().max(1)) else {
                return;
            };
            clan = after;
        }
    }

    #[test]
    fn an_imp_keeps_its_value_its_parent_and_its_place_among_its_siblings() {
        let mut seen = [0u32; 38];
        for seed in 1..12 {
            walk(seed, |clan, imp, made, after| {
                seen[usize::from(made.0)] += 1;
                let origins = clan.origins(imp, made);
                let name = made.name();
                assert_eq!(origins.len(), after.len(), "{name}");
                let mut kept: Vec<usize> = origins.iter().flatten().copied().collect();
                if made.0 != Move::SWAP {
                    assert!(kept.is_sorted(), "{name}");
                }
                kept.sort_unstable();
                kept.dedup();
                assert_eq!(kept.len(), origins.iter().flatten().count(), "{name}");
                for (now, &before) in origins.iter().enumerate() {
                    let Some(before) = before else { continue };
                    let changes = made.0 >= Move::INC || (before == imp && made.0 >= Move::DOT_TO_LINE);
                    assert!(
                        changes || after.values()[now] == clan.values()[before],
                        "{name}: imp {before} became {now}"
                    );
                    let role = clan.roles()[before];
                    assert!(
                        role >= grammar::R_SHAPES || role == grammar::R_SHAPE || after.roles()[now] == role,
                        "{name}"
                    );
                    // A parent stays, unless it is the one that is put in between or taken out.
                    let parent = origins[usize::from(after.parents()[now])];
                    if let Some(parent) = parent.filter(|_| made.0 != Move::UNWRAP) {
                        assert_eq!(parent, usize::from(clan.parents()[before]), "{name}");
                    }
                }
            });
        }
        let all = seen[2..].iter().all(|&count| count > 0);
        assert!(all, "{seen:?}");
    }
}
