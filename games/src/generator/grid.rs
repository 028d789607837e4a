//! Grids of 8×8 cells: ten colours, and a symbol for cells that are absent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Cells on a side.
pub const SIDE: usize = 8;
/// Cells of a grid.
pub const CELLS: usize = SIDE * SIDE;
/// The symbol of a cell outside of the grid's width and height.
pub const ABSENT: u8 = 10;
/// Symbols of a cell: ten colours and [`ABSENT`].
pub const SYMBOLS: usize = 11;
/// `u32`s of a packed grid: four cells in each, the first in the lowest byte.
pub const PACKED: usize = CELLS / 4;

/// 8×8 cells, row by row from the top; equality is on all of them, so width and height matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<u8>>", into = "Vec<Vec<u8>>")]
pub struct Grid {
    /// Symbols below [`SYMBOLS`].
    pub(super) cells: [u8; CELLS],
}

/// Cells that make no grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// Too large, or empty.
    #[error("a grid of {height} rows and {width} columns (1 to 8 of each are possible)")]
    Size {
        /// Rows.
        height: usize,
        /// Columns of the longest row.
        width: usize,
    },
    /// Rows of different lengths.
    #[error("row {row} has {found} cells, {expected} expected")]
    Row {
        /// The row's number from the top.
        row: usize,
        /// Its cells.
        found: usize,
        /// Cells of the first row.
        expected: usize,
    },
    /// No symbol.
    #[error("cell ({x}, {y}) is {symbol}, the greatest symbol is {ABSENT}")]
    Symbol {
        /// Column.
        x: usize,
        /// Row.
        y: usize,
        /// What stands there.
        symbol: u32,
    },
    /// Present and absent cells are mixed.
    #[error("cell ({x}, {y}) does not fit: the cells that are there must be a rectangle at the top left")]
    Shape {
        /// Column.
        x: usize,
        /// Row.
        y: usize,
    },
}

impl Grid {
    /// No cell is there.
    pub const ABSENT: Self = Self {
        cells: [ABSENT; CELLS],
    };

    /// The symbols, row by row from the top.
    pub const fn cells(&self) -> &[u8; CELLS] {
        &self.cells
    }

    /// Whether any cell is there.
    pub fn is_present(&self) -> bool {
        self.cells[0] != ABSENT
    }

    /// Width and height of a whole grid; zeros where no cell is there.
    pub fn size(&self) -> (usize, usize) {
        let there = |cell: &&u8| **cell != ABSENT;
        let width = self.cells.iter().take(SIDE).take_while(there).count();
        let height = self.cells.iter().step_by(SIDE).take_while(there).count();
        (width, height)
    }

    /// A grid of colours from its rows, 1 to 8 of 1 to 8 cells each. Rows of eight cells may also hold absent
    /// ones (10), as long as what is there is a rectangle at the top left.
    ///
    /// # Errors
    /// [`GridError`] naming the first cell or row that does not fit.
    pub fn from_rows(rows: &[Vec<u8>]) -> Result<Self, GridError> {
        let width = rows.iter().map(Vec::len).max().unwrap_or_default();
        if width == 0 || width > SIDE || rows.len() > SIDE {
            return Err(GridError::Size {
                height: rows.len(),
                width,
            });
        }
        let mut grid = Self::ABSENT;
        for (y, row) in rows.iter().enumerate() {
            if row.len() != width {
                return Err(GridError::Row {
                    row: y,
                    found: row.len(),
                    expected: width,
                });
            }
            grid.cells[y * SIDE..y * SIDE + width].copy_from_slice(row);
        }
        grid.check()?;
        if !grid.is_present() {
            return Err(GridError::Shape { x: 0, y: 0 });
        }
        Ok(grid)
    }

    /// Four cells in each `u32`.
    pub fn packed(&self) -> [u32; PACKED] {
        let mut packed = [0; PACKED];
        for (word, cells) in packed.iter_mut().zip(self.cells.chunks_exact(4)) {
            *word = cells
                .iter()
                .rev()
                .fold(0, |word, &cell| word << 8 | u32::from(cell));
        }
        packed
    }

    /// Reads what [`Grid::packed`] gives: a rectangle at the top left, or nothing at all.
    ///
    /// # Errors
    /// [`GridError`] naming the first cell that does not fit.
    pub fn unpack(packed: &[u32; PACKED]) -> Result<Self, GridError> {
        let mut grid = Self::ABSENT;
        for (cells, word) in grid.cells.chunks_exact_mut(4).zip(packed) {
            cells.copy_from_slice(&word.to_le_bytes());
        }
        grid.check()?;
        Ok(grid)
    }

    fn check(&self) -> Result<(), GridError> {
        let (width, height) = self.size();
        for (at, &symbol) in self.cells.iter().enumerate() {
            let (x, y) = (at % SIDE, at / SIDE);
            if usize::from(symbol) >= SYMBOLS {
                return Err(GridError::Symbol {
                    x,
                    y,
                    symbol: symbol.into(),
                });
            }
            if (symbol != ABSENT) != (x < width && y < height) {
                return Err(GridError::Shape { x, y });
            }
        }
        Ok(())
    }
}

impl TryFrom<Vec<Vec<u8>>> for Grid {
    type Error = GridError;

    fn try_from(rows: Vec<Vec<u8>>) -> Result<Self, GridError> {
        Self::from_rows(&rows)
    }
}

impl From<Grid> for Vec<Vec<u8>> {
    fn from(grid: Grid) -> Self {
        grid.cells.chunks(SIDE).map(<[u8]>::to_vec).collect()
    }
}

/// The text symbols of the original: `.brgyafotc` for the colours 0 to 9; an absent cell is a space.
impl fmt::Display for Grid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (y, row) in self.cells.chunks(SIDE).enumerate() {
            if y > 0 {
                out.write_str("\n")?;
            }
            let letters: String = row
                .iter()
                .map(|&cell| {
                    b".brgyafotc "
                        .get(usize::from(cell))
                        .map_or('?', |&letter| letter.into())
                })
                .collect();
            out.write_str(letters.trim_end())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Grid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\n{self}")
    }
}
