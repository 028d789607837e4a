//! Rows: one entry for each point, the last five moves, the compensation of the players.
//!
//! | planes | content |
//! |---|---|
//! | 0–3 | stones of the player to move whose chains have 1, 2, 3, at least 4 liberties |
//! | 4–7 | the other player's, likewise |
//! | 8 | empty points that the player to move may take |
//! | 9 | empty points where suicide or superko forbids a stone |
//! | 10–14 | the last five moves, the newest first |
//! | 15 | 1 if the other player has just passed, so that a pass ends the game |
//! | 16, 17 | compensation of the player to move, and of the other player: points divided by 15 |
//! | 18 | ones |
//!
//! A row first has an entry for each point, in the order of the squares, set in one of the planes 0 to 9. Five entries for the last moves
//! follow; the first entry of the row again where there was no move, or a pass. The values of the planes 15 to 17 follow, the
//! compensation in half points. The planes do not tell who is Black: the players differ by their compensation only.

use super::{Go, RECENT, board::Content};
use crate::{
    Game, PolicyHead, RowForm, RowLayout,
    planes::{self, ConstantPlane, PlaneStack},
    symmetries::{RowSymmetries, Symmetry},
};

const OWN: usize = 0;
const OTHER: usize = 4;
const PLAYABLE: usize = 8;
const FORBIDDEN: usize = 9;
const MOVES: usize = 10;
const PASSED: u32 = (MOVES + RECENT) as u32;
const PLANES: u32 = PASSED + 4;
/// Largest compensation in half points.
const MOST_COMPENSATION: u32 = 800;

/// Number of symmetries of a square board.
pub(super) const SYMMETRIES: u8 = 8;

/// Representation of a board of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Number of lines of the board in each direction.
    pub(super) size: u32,
}

impl Default for Encoding {
    fn default() -> Self {
        Self {
            size: super::Rules::default().size,
        }
    }
}

impl Encoding {
    /// Returns the number of points of the board, which is the action of a pass.
    const fn area(self) -> u32 {
        self.size * self.size
    }

    pub(super) fn layout(self) -> RowLayout {
        let constant = |offset, name: &str, divisor, max| ConstantPlane {
            name: name.into(),
            plane: PASSED + offset,
            divisor,
            max,
        };
        RowLayout {
            game: Go::NAME.into(),
            options: 0,
            form: RowForm::Planes(PlaneStack {
                height: self.size,
                width: self.size,
                entries: self.area() + RECENT as u32,
                planes: PLANES,
                sparse: (0..PASSED).collect(),
                constants: vec![
                    constant(0, "other player has passed", 1, 1),
                    constant(1, "compensation of the mover", 30, MOST_COMPENSATION),
                    constant(2, "compensation of the opponent", 30, MOST_COMPENSATION),
                ],
                ones: vec![PLANES - 1],
            }),
            actions: self.area() + 1,
            mirrored_actions: false,
            policy_head: PolicyHead::Planes,
        }
    }

    pub(super) fn symmetries(self) -> RowSymmetries {
        let image = |symmetry, entry| turn(self.size, symmetry, entry);
        planes::symmetries(&self.layout(), SYMMETRIES, &[], image, image)
    }
}

/// Returns the image of a square in a symmetry: bit 2 mirrors the files; then bits 0 and 1 count quarter turns, each of which takes a1
/// to the last file of the first rank. A number that is not a square, like the pass, is its own image.
pub(super) const fn turn(size: u32, symmetry: Symmetry, square: u32) -> u32 {
    if square >= size * size {
        return square;
    }
    let last = size - 1;
    let (rank, file) = (square / size, square % size);
    let file = if symmetry.0 & 4 == 0 { file } else { last - file };
    let (rank, file) = match symmetry.0 & 3 {
        0 => (rank, file),
        1 => (file, last - rank),
        2 => (last - rank, last - file),
        _ => (last - file, rank),
    };
    size * rank + file
}

/// Returns the symmetry that undoes another one. A mirrored symmetry undoes itself.
const fn inverse(symmetry: Symmetry) -> Symmetry {
    match symmetry.0 {
        turns @ 1..4 => Symmetry(4 - turns),
        _ => symmetry,
    }
}

impl Go {
    pub(super) fn write(&self, symmetry: Symmetry, row: &mut Vec<u32>) {
        let (board, size) = (&self.board, self.rules.size);
        let (area, begin) = (board.area(), row.len());
        // The image of a board is its points in another order, in equal steps along ranks and files.
        let point = |image| board.point(turn(size, inverse(symmetry), image) as usize);
        let origin = point(0);
        let (up, right) = (point(size).wrapping_sub(origin), point(1).wrapping_sub(origin));
        let repeats = self.repeats();
        let own = Content::Stone(self.to_move);
        row.reserve(area + RECENT + 3);
        let mut image = 0;
        for rank in 0..size as usize {
            let mut point = origin.wrapping_add(up.wrapping_mul(rank));
            for _ in 0..size {
                let plane = match board.content(point) {
                    Content::Empty if self.allows(point, &repeats) => PLAYABLE,
                    Content::Empty => FORBIDDEN,
                    content => {
                        let first = if content == own { OWN } else { OTHER };
                        first + usize::from(board.liberties(point).clamp(1, 4)) - 1
                    }
                };
                row.push((area * plane + image) as u32);
                image += 1;
                point = point.wrapping_add(right);
            }
        }
        let first = row.get(begin).copied().unwrap_or_default();
        row.extend((0..).zip(&self.recent).map(|(age, &action)| match action {
            Some(square) => (area * (MOVES + age)) as u32 + turn(size, symmetry, u32::from(square)),
            None => first,
        }));
        let compensation = self.compensation(self.to_move);
        row.extend([
            u32::from(self.passes == 1),
            compensation.max(0) as u32,
            (-compensation).max(0) as u32,
        ]);
    }
}
