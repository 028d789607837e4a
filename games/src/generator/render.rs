//! Rendering of clans as grids, and views of single imps.
//!
//! Every shape gives an ordered list of stamps (x, y, colour). Later stamps lie on top, and stamps outside of the grid are
//! dropped. A Rotation turns the stamps of its child about its pivot before stamps are dropped.

use super::{
    clan::Clan,
    grammar::{self, Color, Coordinate, Direction, MAX_IMPS, Size, Turns},
    grid::{Grid, SIDE},
};

/// Rotation by quarter turns and translation of the plane.
#[derive(Clone, Copy)]
struct Placement {
    xx: i32,
    xy: i32,
    yx: i32,
    yy: i32,
    dx: i32,
    dy: i32,
}

impl Placement {
    const UNMOVED: Self = Self {
        xx: 1,
        xy: 0,
        yx: 0,
        yy: 1,
        dx: 0,
        dy: 0,
    };

    fn place(self, x: i32, y: i32) -> (i32, i32) {
        (
            self.xx * x + self.xy * y + self.dx,
            self.yx * x + self.yy * y + self.dy,
        )
    }

    /// Returns the composition: a quarter turn clockwise about (px, py), then this map.
    fn after_quarter_turn(self, px: i32, py: i32) -> Self {
        // (x, y) → (px - (y - py), py + (x - px))
        let (dx, dy) = self.place(px + py, py - px);
        Self {
            xx: self.xy,
            xy: -self.xx,
            yx: self.yy,
            yy: -self.yx,
            dx,
            dy,
        }
    }
}

/// One cell painted by a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the Dot, Line or Rect that paints it.
    pub shape: u8,
    /// Cell, `8·y + x`.
    pub cell: u8,
    /// Colour.
    pub color: Color,
}

impl Clan {
    /// Calls `each` for every stamp within the grid, in the order of painting.
    pub fn stamps(&self, mut each: impl FnMut(Stamp)) {
        let (width, height) = (self.width() as i32, self.height() as i32);
        let mut placements = [Placement::UNMOVED; MAX_IMPS];
        for imp in 4..self.len() {
            let value = self.values[imp];
            if !grammar::is_shape(value) {
                continue;
            }
            let mut placement = placements[usize::from(self.parents[imp])];
            let at = |offset: usize| self.values.get(imp + offset).copied().unwrap_or_default();
            let place = |offset: usize| i32::from(Coordinate::read(at(offset)).get());
            let size = |offset: usize| i32::from(Size::read(at(offset)).get());
            let color_of = |offset: usize| Color::read(at(offset));
            let mut stamp = |x: i32, y: i32, color: Color| {
                let (x, y) = placement.place(x, y);
                if (0..width).contains(&x) && (0..height).contains(&y) {
                    let cell = (y as usize * SIDE + x as usize) as u8;
                    each(Stamp {
                        shape: imp as u8,
                        cell,
                        color,
                    });
                }
            };
            match value {
                // Dot, Coords, x, y, color
                grammar::DOT => stamp(place(2), place(3), color_of(4)),
                // Line, Coords, x, y, color, direction, length
                grammar::LINE => {
                    let (dx, dy) = grammar::STEPS[usize::from(Direction::read(at(5)).get())];
                    for step in 0..size(6) {
                        stamp(place(2) + step * dx, place(3) + step * dy, color_of(4));
                    }
                }
                // Rect, width, height, Coords, x, y, color
                grammar::RECT => {
                    for y in 0..size(2) {
                        for x in 0..size(1) {
                            stamp(place(4) + x, place(5) + y, color_of(6));
                        }
                    }
                }
                grammar::ROTATION => {
                    // The child, then turns, Coords, x, y.
                    let turns = self.end(imp + 1);
                    let at = |offset: usize| self.values.get(turns + offset).copied().unwrap_or_default();
                    let place = |offset: usize| i32::from(Coordinate::read(at(offset)).get());
                    for _ in 0..Turns::read(at(0)).get() {
                        placement = placement.after_quarter_turn(place(2), place(3));
                    }
                }
                _ => {}
            }
            placements[imp] = placement;
        }
    }

    /// Returns the grid that the clan draws.
    pub fn render(&self) -> Grid {
        let mut grid = self.bare();
        self.stamps(|stamp| grid.cells[usize::from(stamp.cell)] = stamp.color.get());
        grid
    }

    /// Returns the stamps of the sept of `imp` as a grid without background.
    ///
    /// An imp that is not a shape has the view of its nearest enclosing shape. The Generator and its own leaves have the
    /// whole render. (By the letter of the game's first description, leaves would show nothing.)
    pub fn imp_view(&self, imp: usize) -> Grid {
        let Some(shape) = self.enclosing_shape(imp) else {
            return self.render();
        };
        let sept = shape..self.end(shape);
        let mut grid = Grid::ABSENT;
        self.stamps(|stamp| {
            if sept.contains(&usize::from(stamp.shape)) {
                grid.cells[usize::from(stamp.cell)] = stamp.color.get();
            }
        });
        grid
    }

    /// Returns the grid of the clan's size, filled with the background.
    fn bare(&self) -> Grid {
        let mut grid = Grid::ABSENT;
        for row in grid.cells.chunks_exact_mut(SIDE).take(self.height()) {
            row[..self.width()].fill(self.background());
        }
        grid
    }
}
