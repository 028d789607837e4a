//! Turns of the square and permutations of the colours, for training. They commute with rendering.
//!
//! No turn is an exact symmetry of the game: new shapes lie at the top left and point to the right, and rectangles grow to
//! the right and downward. So a turned problem may take a few moves more or less. Permutations of the colours 2 to 9 are
//! exact, because new shapes are black or blue. [`Change::action`] is `None` for a move without exact counterpart.

use super::{
    clan::Clan,
    grammar::{
        COLOR, COORDS, Color, Coordinate, Direction, GENERATOR, INT, R_HEIGHT, R_START, R_WIDTH, R_X, R_Y,
        RECT, Size, Turns,
    },
    grid::{ABSENT, Grid, SIDE},
    moves::Move,
};

/// Number of turns of the square, the identity (0) included.
pub const TURNS_OF_SQUARE: u8 = 8;

/// A turn and a permutation of the colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Turn: bit 2 exchanges left and right, then bits 0 and 1 count quarter turns clockwise.
    turn: u8,
    /// Image of each colour.
    colors: [u8; 10],
}

impl Change {
    /// Change that keeps everything.
    pub const IDENTITY: Self = Self {
        turn: 0,
        colors: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    };

    /// Makes a change with a turn (taken modulo 8), in which colour `c` becomes `colors[c]`. `None` if `colors` is not a
    /// permutation.
    pub fn new(turn: u8, colors: [u8; 10]) -> Option<Self> {
        let set = colors.iter().fold(0u32, |set, &color| {
            set | 1u32.checked_shl(color.into()).unwrap_or(0)
        });
        (set == 0x3ff).then_some(Self {
            turn: turn % TURNS_OF_SQUARE,
            colors,
        })
    }

    /// Draws an exact change, which permutes the colours 2 to 9. `draw(n)` gives a random number below `n`.
    pub fn of_colors(draw: &mut dyn FnMut(usize) -> usize) -> Self {
        let mut change = Self::IDENTITY;
        for last in (3..10).rev() {
            let other = 2 + draw(last - 1).min(last - 2);
            change.colors.swap(last, other);
        }
        change
    }

    /// True if the change is an exact symmetry: no turn, and the colours of new shapes stay.
    pub fn is_exact(&self) -> bool {
        self.turn == 0 && self.colors[0] == 0 && self.colors[1] == 1
    }

    /// True if the turn keeps the top left corner. Other turns can be used only if the target has the size of the clan:
    /// grids are turned about the middle of their own rectangles.
    pub const fn keeps_corner(&self) -> bool {
        // Turn 7 is a mirror and three quarter turns, the transposition.
        self.turn == 0 || self.turn == 7
    }

    const fn is_mirrored(&self) -> bool {
        self.turn & 4 != 0
    }

    const fn swaps_axes(&self) -> bool {
        self.turn & 1 != 0
    }

    /// Returns the image of a point of a rectangle of `size` (width, height).
    fn point(&self, size: (i32, i32), point: (i32, i32)) -> (i32, i32) {
        let ((mut width, mut height), (mut x, mut y)) = (size, point);
        if self.is_mirrored() {
            x = width - 1 - x;
        }
        for _ in 0..self.turn & 3 {
            (x, y) = (height - 1 - y, x);
            (width, height) = (height, width);
        }
        (x, y)
    }

    /// Returns the image of a step.
    fn step(&self, step: (i32, i32)) -> (i32, i32) {
        let origin = self.point((1, 1), (0, 0));
        let moved = self.point((1, 1), step);
        (moved.0 - origin.0, moved.1 - origin.1)
    }

    /// Returns the image of a grid, turned about the middle of its own rectangle and recoloured.
    pub fn grid(&self, grid: &Grid) -> Grid {
        self.view(grid, grid.size())
    }

    /// Returns the image of an imp's view, turned about the middle of a rectangle of `size` (width, height), the size of
    /// its clan.
    pub fn view(&self, view: &Grid, size: (usize, usize)) -> Grid {
        let mut changed = Grid::ABSENT;
        for y in 0..size.1 {
            for x in 0..size.0 {
                let cell = view.cells[y * SIDE + x];
                let to = self.point((size.0 as i32, size.1 as i32), (x as i32, y as i32));
                if let Some(place) = changed.cells.get_mut(to.1 as usize * SIDE + to.0 as usize) {
                    *place = if cell == ABSENT { ABSENT } else { self.color(cell) };
                }
            }
        }
        changed
    }

    /// Returns the image of a colour. Other numbers stay.
    pub(super) fn color(&self, color: u8) -> u8 {
        self.colors.get(usize::from(color)).copied().unwrap_or(color)
    }

    /// Returns the clan that renders as the changed grid, with the same numbers of imps. `None` if a coordinate would not
    /// be 0 to 7.
    pub fn clan(&self, clan: &Clan) -> Option<Clan> {
        let size = (clan.width() as i32, clan.height() as i32);
        let mut changed = *clan;
        for imp in 0..clan.len() {
            let value = clan.values[imp];
            match value {
                GENERATOR | RECT if self.swaps_axes() => changed.values.swap(imp + 1, imp + 2),
                COORDS => {
                    let (x, y) = self.place(clan, imp, size);
                    for (leaf, number) in [(imp + 1, x), (imp + 2, y)] {
                        let number = Coordinate::new(u8::try_from(number).ok()?)?;
                        changed.values[leaf] = number.value();
                    }
                }
                COLOR.. => changed.values[imp] = self.leaf(value),
                _ => {}
            }
        }
        Some(changed)
    }

    /// Returns the image of the one-hot value of a colour, a direction or turns. Other values stay.
    fn leaf(&self, value: u8) -> u8 {
        if let Some(color) = Color::of(value) {
            return Color::nearest(self.color(color.get())).value();
        }
        if let Some(direction) = Direction::of(value) {
            let quarters = 2 * (self.turn & 3);
            return match self.is_mirrored() {
                // Left and right are exchanged.
                true => Direction::nearest(4).turn(8 - direction.get()),
                false => direction,
            }
            .turn(quarters)
            .value();
        }
        match Turns::of(value) {
            Some(turns) if self.is_mirrored() => Turns::nearest(4 - turns.get()).value(),
            _ => value,
        }
    }

    /// Returns the image of the point of a Coords. For the start of a Rect, the corner that is at the top left after the
    /// turn.
    fn place(&self, clan: &Clan, imp: usize, size: (i32, i32)) -> (i32, i32) {
        let coordinate = |leaf: usize| i32::from(Coordinate::read(clan.values[leaf]).get());
        let side = |leaf: usize| i32::from(Size::read(clan.values[leaf]).get());
        let at = (coordinate(imp + 1), coordinate(imp + 2));
        let moved = self.point(size, at);
        let parent = usize::from(clan.parents[imp]);
        if clan.values[parent] != RECT || clan.roles[imp] != R_START {
            return moved;
        }
        let (width, height) = (side(parent + 1), side(parent + 2));
        let corner = self.point(size, (at.0 + width - 1, at.1 + height - 1));
        (moved.0.min(corner.0), moved.1.min(corner.1))
    }

    /// Returns the imp and move of the changed clan that are the counterpart of this move of `imp`. `None` if there is no
    /// exact one.
    pub fn action(&self, clan: &Clan, imp: usize, action: Move) -> Option<(usize, Move)> {
        if imp >= clan.len() {
            return None;
        }
        let (value, role) = (clan.values[imp], clan.roles[imp]);
        let same = Some((imp, action));
        match action.0 {
            Move::APPEND_DOT..=Move::INSERT_RECT => {
                let is_line = (action.0 - Move::APPEND_DOT) % 3 == 1;
                let fresh = |background: u8| u8::from(background == 0);
                let (old, new) = (clan.background(), self.color(clan.background()));
                let keeps_color = self.color(fresh(old)) == fresh(new);
                let keeps_place = if is_line {
                    self.turn == 0
                } else {
                    self.keeps_corner()
                };
                same.filter(|_| keeps_color && keeps_place)
            }
            Move::WRAP_ROTATION | Move::DOT_TO_LINE => same.filter(|_| self.turn == 0),
            Move::DOT_TO_RECT => same,
            Move::MOVE_LEFT..=Move::MOVE_DOWN => {
                let step = [(-1, 0), (1, 0), (0, -1), (0, 1)][usize::from(action.0 - Move::MOVE_LEFT)];
                let turned = match self.step(step) {
                    (-1, _) => 0,
                    (1, _) => 1,
                    (_, -1) => 2,
                    _ => 3,
                };
                Some((imp, Move(Move::MOVE_LEFT + turned)))
            }
            Move::SET_COLOR..=Move::SET_COLOR_9 => {
                let color = self.color(action.0 - Move::SET_COLOR);
                Some((imp, Move(Move::SET_COLOR + color)))
            }
            Move::DIR_CW | Move::DIR_CCW if self.is_mirrored() => {
                Some((imp, Move(Move::DIR_CW + Move::DIR_CCW - action.0)))
            }
            Move::TURN_NEXT => same.filter(|_| !self.is_mirrored()),
            Move::INC | Move::DEC if value >= INT && matches!(role, R_WIDTH | R_HEIGHT | R_X | R_Y) => {
                let is_across = matches!(role, R_WIDTH | R_X);
                let step = self.step(if is_across { (1, 0) } else { (0, 1) });
                let is_less = step.0 + step.1 < 0;
                if is_less && matches!(role, R_WIDTH | R_HEIGHT) {
                    return None;
                }
                let imp = match (self.swaps_axes(), is_across) {
                    (false, _) => imp,
                    (true, true) => imp + 1,
                    (true, false) => imp - 1,
                };
                let flipped = Move(Move::INC + Move::DEC - action.0);
                Some((imp, if is_less { flipped } else { action }))
            }
            _ => same,
        }
    }
}
