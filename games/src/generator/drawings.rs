//! Drawings from the grammar: programs of evenly drawn sizes, places, lengths, directions and colours, and rules that change
//! them, each with the moves that make it.
//!
//! A random walk changes one value by one, mostly a colour, so its grids keep about the size of the start, and long lines are
//! rare. Here a change is drawn as a whole: a leaf and its new value, or a shape and all its values. The moves of the change go
//! straight there. Changes that would take more moves than are left, or that cannot be seen, are not made.

use super::{
    clan::Clan,
    grammar::{
        self, Color, Coordinate, Direction, LINE, R_BACKGROUND, R_COLOR, R_DIRECTION, R_SHAPES, R_TURNS,
        RECT, STEPS, Size, Turns,
    },
    moves::{self, Move},
};
use crate::game::Action;

/// Number of changes that are tried for a drawing or a rule.
const TRIES: usize = 64;

/// Gives a random number below its argument.
pub(super) type Draw<'a> = dyn FnMut(usize) -> usize + 'a;

/// Returns at most `most` moves from the start clan, and the clan after them. Half of the grids get an even size, and half of
/// these are squares; every third gets another background. Shapes follow while moves are left: six in eight are new ones, which
/// lie within the grid; the others are moved copies of shapes, and rotations.
pub(super) fn drawing(most: usize, draw: &mut Draw<'_>) -> (Vec<Action>, Clan) {
    let mut course = Course::new(Clan::start(), most);
    if draw(2) == 0 {
        let width = 1 + draw(8) as u8;
        let height = if draw(2) == 0 { width } else { 1 + draw(8) as u8 };
        course.attempt(|course| {
            course.set(1, Size::nearest(width).value())?;
            course.set(2, Size::nearest(height).value())
        });
    }
    if draw(3) == 0 {
        let color = Color::nearest(1 + draw(9) as u8);
        course.attempt(|course| course.set(3, color.value()));
    }
    for _ in 0..TRIES {
        if course.left() == 0 {
            break;
        }
        let change = draw(8);
        course.attempt(|course| match change {
            0 => course.copy(draw),
            1 => course.rotate(draw),
            _ => course.new_shape(draw),
        });
    }
    (course.made, course.clan)
}

/// Returns at most `most` moves that change what `clan` draws, and the clan after them. They are one change, and a further one
/// each time that a coin says so: another value of a leaf; a shape, or two as a group, moved elsewhere; a new, copied, turned,
/// removed or raised shape.
pub(super) fn rule(clan: Clan, most: usize, draw: &mut Draw<'_>) -> (Vec<Action>, Clan) {
    let mut course = Course::new(clan, most);
    for _ in 0..TRIES {
        let change = draw(8);
        let is_made = course.attempt(|course| match change {
            0 | 1 => course.change_leaf(draw),
            2 => course.shape(draw).and_then(|shape| course.shift(shape, draw)),
            3 => course.new_shape(draw),
            4 => course.copy(draw),
            5 => course.rotate(draw),
            6 => course.remove_or_raise(draw),
            _ => course.shift_two(draw),
        });
        if is_made && draw(2) == 0 {
            break;
        }
    }
    (course.made, course.clan)
}

/// Moves made so far, with the clans that they led through.
struct Course {
    clan: Clan,
    /// Clans before each move.
    before: Vec<Clan>,
    made: Vec<Action>,
    /// Most moves.
    most: usize,
}

impl Course {
    fn new(clan: Clan, most: usize) -> Self {
        Self {
            clan,
            before: Vec::with_capacity(most),
            made: Vec::with_capacity(most),
            most,
        }
    }

    fn left(&self) -> usize {
        self.most - self.made.len()
    }

    /// Makes a change, or nothing if one of its moves cannot be made or the drawing stays as it is. Returns whether it was made.
    fn attempt(&mut self, change: impl FnOnce(&mut Self) -> Option<()>) -> bool {
        let (clan, moves) = (self.clan, self.made.len());
        let is_made = change(self).is_some() && self.clan.render() != clan.render();
        if !is_made {
            self.clan = clan;
            self.before.truncate(moves);
            self.made.truncate(moves);
        }
        is_made
    }

    /// Makes a move. `None` if no moves are left, if it fails, and if it leads back to an earlier clan.
    fn go(&mut self, imp: usize, made: u8) -> Option<()> {
        if self.left() == 0 {
            return None;
        }
        let after = self.clan.after(imp, Move(made))?;
        if self.before.contains(&after) {
            return None;
        }
        self.before.push(self.clan);
        self.made.push(moves::action(imp, Move(made)));
        self.clan = after;
        Some(())
    }

    /// Makes the moves that give a leaf this one-hot value.
    fn set(&mut self, leaf: usize, wanted: u8) -> Option<()> {
        let role = *self.clan.roles().get(leaf)?;
        while self.clan.values[leaf] != wanted {
            let value = self.clan.values[leaf];
            let made = match role {
                R_BACKGROUND | R_COLOR => Move::SET_COLOR + Color::of(wanted)?.get(),
                R_DIRECTION if (wanted + 8).wrapping_sub(value) % 8 <= 4 => Move::DIR_CW,
                R_DIRECTION => Move::DIR_CCW,
                R_TURNS => Move::TURN_NEXT,
                _ if wanted > value => Move::INC,
                _ => Move::DEC,
            };
            self.go(leaf, made)?;
        }
        Some(())
    }

    /// Draws an imp that `fits`, by its value and role.
    fn imp(&self, draw: &mut Draw<'_>, fits: impl Fn(u8, u8) -> bool) -> Option<usize> {
        let imps = self.clan.values().iter().zip(self.clan.roles());
        let fitting: Vec<usize> = imps
            .enumerate()
            .filter(|(_, (value, role))| fits(**value, **role))
            .map(|(imp, _)| imp)
            .collect();
        fitting.get(draw(fitting.len().max(1))).copied()
    }

    /// Draws a shape, in a list or not.
    fn shape(&self, draw: &mut Draw<'_>) -> Option<usize> {
        self.imp(draw, |value, _| grammar::is_shape(value))
    }

    /// Draws a shape of a list.
    fn listed(&self, draw: &mut Draw<'_>) -> Option<usize> {
        self.imp(draw, |_, role| role >= R_SHAPES)
    }

    /// Draws a colour that is not the background's.
    fn color(&self, draw: &mut Draw<'_>) -> u8 {
        Color::nearest((self.clan.background() + 1 + draw(9) as u8) % 10).value()
    }

    /// Appends a Dot, Line or Rect that lies within the grid. A line has two cells at least.
    fn new_shape(&mut self, draw: &mut Draw<'_>) -> Option<()> {
        let imp = self.clan.len();
        let kind = draw(3) as u8;
        self.go(0, Move::APPEND_DOT + kind)?;
        let (columns, rows) = (self.clan.width(), self.clan.height());
        let (x, y, color) = (draw(columns), draw(rows), self.color(draw));
        let start = match self.clan.values[imp] {
            LINE => {
                let direction = draw(8);
                let (dx, dy) = STEPS[direction];
                let is_inside = |step: &i32| {
                    let (x, y) = (x as i32 + step * dx, y as i32 + step * dy);
                    (0..columns as i32).contains(&x) && (0..rows as i32).contains(&y)
                };
                let room = (0..).take_while(is_inside).count();
                if room < 2 {
                    return None;
                }
                self.set(imp + 5, Direction::nearest(direction as u8).value())?;
                self.set(imp + 6, Size::nearest(2 + draw(room - 1) as u8).value())?;
                imp + 1
            }
            RECT => {
                self.set(imp + 1, Size::nearest(1 + draw(columns - x) as u8).value())?;
                self.set(imp + 2, Size::nearest(1 + draw(rows - y) as u8).value())?;
                imp + 3
            }
            _ => imp + 1,
        };
        self.set(start + 1, Coordinate::nearest(x as u8).value())?;
        self.set(start + 2, Coordinate::nearest(y as u8).value())?;
        self.set(start + 3, color)
    }

    /// Moves all places of a sept by a drawn distance.
    fn shift(&mut self, imp: usize, draw: &mut Draw<'_>) -> Option<()> {
        // Left and right, then up and down.
        let sides = [
            (self.clan.width(), Move::MOVE_LEFT),
            (self.clan.height(), Move::MOVE_LEFT + 2),
        ];
        for (cells, back) in sides {
            let (steps, forth) = (draw(cells), draw(2) as u8);
            for _ in 0..steps {
                self.go(imp, back + forth)?;
            }
        }
        Some(())
    }

    /// Gives a leaf another value, any that its role allows.
    fn change_leaf(&mut self, draw: &mut Draw<'_>) -> Option<()> {
        let leaf = self.imp(draw, |value, _| grammar::is_leaf(value))?;
        let mut values = grammar::values_of(self.clan.roles()[leaf]);
        let count = values.clone().count();
        self.set(leaf, values.nth(draw(count))?)
    }

    /// Copies a shape and moves the copy. Every other copy of a shape with a colour gets another one.
    fn copy(&mut self, draw: &mut Draw<'_>) -> Option<()> {
        let imp = self.listed(draw)?;
        let copy = self.clan.end(imp);
        self.go(imp, Move::DUPLICATE)?;
        self.shift(copy, draw)?;
        let mut leaves = copy..self.clan.end(copy);
        match leaves.find(|&leaf| self.clan.roles()[leaf] == R_COLOR) {
            Some(leaf) if draw(2) == 0 => {
                let color = self.color(draw);
                self.set(leaf, color)
            }
            _ => Some(()),
        }
    }

    /// Turns a shape by one to three quarters. Every other rotation gets a pivot within the grid.
    fn rotate(&mut self, draw: &mut Draw<'_>) -> Option<()> {
        let imp = self.shape(draw)?;
        self.go(imp, Move::WRAP_ROTATION)?;
        let turns = self.clan.end(imp + 1);
        self.set(turns, Turns::nearest(1 + draw(3) as u8).value())?;
        if draw(2) == 0 {
            let (x, y) = (draw(self.clan.width()), draw(self.clan.height()));
            self.set(turns + 2, Coordinate::nearest(x as u8).value())?;
            self.set(turns + 3, Coordinate::nearest(y as u8).value())?;
        }
        Some(())
    }

    /// Puts a shape and the next one into a group and moves them.
    fn shift_two(&mut self, draw: &mut Draw<'_>) -> Option<()> {
        let imp = self.listed(draw)?;
        self.go(imp, Move::GROUP_WITH_NEXT)?;
        self.shift(imp, draw)
    }

    /// Removes a shape, or draws it after the next one, on top of it.
    fn remove_or_raise(&mut self, draw: &mut Draw<'_>) -> Option<()> {
        let imp = self.listed(draw)?;
        self.go(imp, if draw(2) == 0 { Move::DELETE } else { Move::SWAP })
    }
}
