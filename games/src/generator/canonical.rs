//! Canonical colours: one representative of all positions that differ by a permutation of the colours 2 to 9.
//!
//! These permutations are exact symmetries of the game. The representative has its colours
//! numbered in the order in which they occur: in the grids of the problem, then in the clan, then in the examples. Colours
//! that do not occur have the last numbers, in their own order. They are all alike, because nothing in the position tells them
//! apart. The examples are taken in an order that does not depend on their colours either ([`ProblemColors`]).

use super::{
    clan::{Clan, mix},
    grammar::Color,
    grid::{CELLS, Grid},
    moves::{MOVES, Move, imp_and_move},
    problem::{Example, Examples, MAX_EXAMPLES, Problem},
    row,
};
use crate::{Symmetry, game::Action, symmetries::RowMaps};

/// Permutation of the colours: the image of each. Those that keep the colours 0 and 1, which new shapes have, are exact
/// symmetries of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Recoloring([u8; 10]);

impl Recoloring {
    /// Draws a permutation of the colours 2 to 9. `draw(n)` gives a random number below `n`.
    fn drawn(draw: &mut dyn FnMut(usize) -> usize) -> Self {
        let mut colors = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        for last in (3..10).rev() {
            let other = 2 + draw(last - 1).min(last - 2);
            colors.swap(last, other);
        }
        Self(colors)
    }

    /// Returns the image of a colour. Other numbers stay.
    fn color(&self, color: u8) -> u8 {
        self.0.get(usize::from(color)).copied().unwrap_or(color)
    }
}

/// Numbers of the colours that occurred so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Naming {
    /// Number of each colour. 0 for a colour of 2 to 9 that did not occur.
    names: [u8; 10],
    /// Number of the next colour that occurs.
    next: u8,
}

impl Naming {
    /// Naming in which no colour occurred.
    pub(super) const NONE: Self = Self {
        names: [0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        next: 2,
    };

    /// Visits the cells of a grid, and passes the number of each to `each`. Absent cells keep theirs.
    pub(super) fn rename(&mut self, grid: &Grid, mut each: impl FnMut(u8)) {
        for &cell in grid.cells() {
            each(self.note(cell));
        }
    }

    /// Returns the number of a colour, which is new if the colour did not occur. The symbol of an absent cell stays.
    fn note(&mut self, color: u8) -> u8 {
        match self.names.get_mut(usize::from(color)) {
            Some(name) if *name == 0 && color > 1 => {
                *name = self.next;
                self.next += 1;
                *name
            }
            Some(&mut name) => name,
            None => color,
        }
    }

    /// Returns the permutation, in which colours that did not occur have the last numbers.
    fn finish(mut self) -> Recoloring {
        for color in 2..10 {
            self.note(color);
        }
        Recoloring(self.names)
    }
}

/// Number of colours that have no meaning: 2 to 9.
const COLORS: usize = 8;

/// Colours of a problem: numbers of those in its grids, and the colours of its examples.
///
/// Examples are ordered by their drawings, with colours numbered in the order in which each example itself shows them. Between
/// equal drawings the order is the one that gives the least numbers in the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProblemColors {
    /// Naming after the grids of the problem.
    naming: Naming,
    examples: Vec<Palette>,
}

/// Colours of an example.
#[derive(Clone, Debug, PartialEq)]
struct Palette {
    /// Cells of both grids, in the example's own numbers.
    drawing: [u8; 2 * CELLS],
    /// Colours of 2 to 9, in the order of their numbers.
    colors: Vec<u8>,
}

impl Palette {
    fn of(example: &Example) -> Self {
        let mut naming = Naming::NONE;
        let (mut drawing, mut colors) = ([0; 2 * CELLS], Vec::with_capacity(COLORS));
        let cells = example.input.cells().iter().chain(example.output.cells());
        for (own, &cell) in drawing.iter_mut().zip(cells) {
            let known = naming.next;
            *own = naming.note(cell);
            if naming.next > known {
                colors.push(cell);
            }
        }
        Self { drawing, colors }
    }
}

impl ProblemColors {
    /// Visits the colours of a problem and its examples.
    pub(super) fn of(problem: &Problem, examples: &Examples) -> Self {
        let mut naming = Naming::NONE;
        for grid in [problem.target(), problem.second_target()].into_iter().flatten() {
            naming.rename(grid, |_| ());
        }
        let mut examples: Vec<Palette> = examples.as_slice().iter().map(Palette::of).collect();
        examples.sort_by_key(|example| example.drawing);
        Self { naming, examples }
    }

    /// Returns the permutation to the canonical colours of a position with this clan.
    pub(super) fn with_clan(&self, clan: &Clan) -> Recoloring {
        let mut naming = self.naming;
        for &value in clan.values() {
            if let Some(color) = Color::of(value) {
                naming.note(color.get());
            }
        }
        let orders = ORDERS.iter().filter(|order| self.is_order(order));
        let named = orders.map(|order| self.in_order(order, naming));
        let least = named.min_by_key(|&(numbers, _)| numbers);
        least.map_or(naming, |(_, naming)| naming).finish()
    }

    /// True if the examples in this order have ascending drawings.
    fn is_order(&self, order: &[usize; MAX_EXAMPLES]) -> bool {
        (0..).zip(order).all(|(at, &place)| match self.examples.get(at) {
            Some(example) => self
                .examples
                .get(place)
                .is_some_and(|other| other.drawing == example.drawing),
            None => at == place,
        })
    }

    /// Visits the colours of the examples in an order. Returns the numbers of the colours of each, and the naming.
    fn in_order(
        &self,
        order: &[usize; MAX_EXAMPLES],
        mut naming: Naming,
    ) -> ([u8; MAX_EXAMPLES * COLORS], Naming) {
        let mut numbers = [0; MAX_EXAMPLES * COLORS];
        for (numbers, &place) in numbers.chunks_exact_mut(COLORS).zip(order) {
            let colors = self
                .examples
                .get(place)
                .into_iter()
                .flat_map(|example| &example.colors);
            for (number, &color) in numbers.iter_mut().zip(colors) {
                *number = naming.note(color);
            }
        }
        (numbers, naming)
    }
}

/// Orders of the examples. Places beyond the last example keep their own.
const ORDERS: [[usize; MAX_EXAMPLES]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Appends to `order` the places in `legal` of these actions, in the order of their policy entries after the change.
pub(super) fn order(change: &Recoloring, legal: &[Action], order: &mut Vec<u32>) {
    let mut next = 0;
    // Actions of one imp are next to each other. A colour has no moves but those that set it, and only these change their order.
    for of_imp in legal.chunk_by(|&one, &other| imp_and_move(one).0 == imp_and_move(other).0) {
        let start = order.len();
        order.extend(next..next + of_imp.len() as u32);
        if of_imp.first().is_some_and(|&action| sets_color(action)) {
            order[start..].sort_by_key(|&place| entry(change, legal[place as usize]));
        }
        next += of_imp.len() as u32;
    }
}

/// True if the action sets a colour.
pub(super) fn sets_color(action: Action) -> bool {
    (Move::SET_COLOR..=Move::SET_COLOR_9).contains(&imp_and_move(action).1.0)
}

/// Number of permutations: as many as a [`Symmetry`] can number, without the identity.
const MOST: usize = 254;

/// Permutations of the colours 2 to 9, which new shapes never have.
#[derive(Clone, Debug)]
pub(super) struct Recolorings(Vec<Recoloring>);

impl Recolorings {
    /// Draws permutations out of the 40,320. Every call draws the same ones.
    pub(super) fn new() -> Self {
        let mut number = 0;
        let mut draw = |below: usize| {
            number += 1;
            (mix(number) % below as u64) as usize
        };
        Self((0..MOST).map(|_| Recoloring::drawn(&mut draw)).collect())
    }

    fn change(&self, symmetry: Symmetry) -> Option<&Recoloring> {
        self.0.get(usize::from(symmetry.0).checked_sub(1)?)
    }
}

impl RowMaps for Recolorings {
    fn count(&self, _row: &[u32]) -> u8 {
        MOST as u8 + 1
    }

    fn turn_row(&self, symmetry: Symmetry, row: &mut [u32]) {
        if let Some(change) = self.change(symmetry) {
            recolor(change, row);
        }
    }

    fn turn_action(&self, symmetry: Symmetry, entry: u32) -> u32 {
        self.change(symmetry)
            .map_or(entry, |change| self::entry(change, entry))
    }
}

/// Permutes the colours of a valid row in place.
pub(super) fn recolor(change: &Recoloring, row: &mut [u32]) {
    let (imps, grids) = row::parts_mut(row);
    for imp in imps {
        if let Some(color) = Color::of(*imp as u8) {
            *imp = *imp & !0xff | u32::from(Color::nearest(change.color(color.get())).value());
        }
    }
    for cells in &mut *grids {
        *cells = u32::from_le_bytes(cells.to_le_bytes().map(|cell| change.color(cell)));
    }
    row::sort_examples(grids);
}

/// Returns the policy entry of an action after a permutation of the colours. `action` is the entry before it.
pub(super) fn entry(change: &Recoloring, action: u32) -> u32 {
    let own = (action as usize % MOVES) as u8;
    match own.checked_sub(Move::SET_COLOR).filter(|&color| color < 10) {
        Some(color) => action - u32::from(color) + u32::from(change.color(color)),
        None => action,
    }
}
