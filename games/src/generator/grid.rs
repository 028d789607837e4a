//! [`Grid`]: 8×8 cells of ten colours, some of which may be absent.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Number of cells on a side.
pub const SIDE: usize = 8;
/// Number of cells of a grid.
pub const CELLS: usize = SIDE * SIDE;
/// Symbol of an absent cell, outside of the grid's width and height.
pub const ABSENT: u8 = 10;
/// Number of symbols of a cell: ten colours and [`ABSENT`].
pub const SYMBOLS: usize = 11;
/// Number of `u32` of a packed grid. Each holds four cells, the first in the lowest byte.
pub const PACKED: usize = CELLS / 4;

/// Grid of up to 8×8 cells, row by row from the top. Grids are equal if all cells are equal, so width and height matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<u8>>", into = "Vec<Vec<u8>>")]
pub struct Grid {
    /// Symbols below [`SYMBOLS`].
    pub(super) cells: [u8; CELLS],
}

/// Error: cells do not form a grid. The message names the first cell or row that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GridError(String);

impl Grid {
    /// Grid of absent cells.
    pub const ABSENT: Self = Self {
        cells: [ABSENT; CELLS],
    };

    /// Returns the symbols of the cells, row by row from the top.
    pub const fn cells(&self) -> &[u8; CELLS] {
        &self.cells
    }

    /// True if any cell is not absent.
    pub fn is_present(&self) -> bool {
        self.cells[0] != ABSENT
    }

    /// Returns the width and height of the grid. Zeros if all cells are absent.
    pub fn size(&self) -> (usize, usize) {
        let is_present = |cell: &&u8| **cell != ABSENT;
        let width = self.cells.iter().take(SIDE).take_while(is_present).count();
        let height = self.cells.iter().step_by(SIDE).take_while(is_present).count();
        (width, height)
    }

    /// Returns the rows of the cells that are not absent, from the top.
    pub fn rows(&self) -> Vec<Vec<u8>> {
        let (width, height) = self.size();
        let rows = self.cells.chunks_exact(SIDE).take(height);
        rows.map(|row| row[..width].to_vec()).collect()
    }

    /// Makes a grid of 1 to 8 rows of colours, with 1 to 8 cells each. Rows may hold absent cells (10), if the others
    /// are a rectangle at the top left.
    ///
    /// # Errors
    /// [`GridError`] that names the first cell or row that does not fit.
    pub fn from_rows(rows: &[Vec<u8>]) -> Result<Self, GridError> {
        let width = rows.iter().map(Vec::len).max().unwrap_or_default();
        if width == 0 || width > SIDE || rows.len() > SIDE {
            let height = rows.len();
            return Err(GridError(format!(
                "a grid of {height} rows and {width} columns (1 to 8 of each are possible)"
            )));
        }
        let mut grid = Self::ABSENT;
        for (y, row) in rows.iter().enumerate() {
            if row.len() != width {
                let found = row.len();
                return Err(GridError(format!("row {y} has {found} cells instead of {width}")));
            }
            grid.cells[y * SIDE..y * SIDE + width].copy_from_slice(row);
        }
        grid.check()?;
        if !grid.is_present() {
            return Err(misplaced(0, 0));
        }
        Ok(grid)
    }

    /// Returns the packed form of the grid, with four cells in each `u32`.
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

    /// Reads the packed form of a grid (see [`Grid::packed`]). All cells may be absent.
    ///
    /// # Errors
    /// [`GridError`] that names the first cell that does not fit.
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
                return Err(GridError::of_symbol(x, y, symbol.into()));
            }
            if (symbol != ABSENT) != (x < width && y < height) {
                return Err(misplaced(x, y));
            }
        }
        Ok(())
    }
}

impl GridError {
    /// Returns the error for a cell whose symbol is too large.
    pub(super) fn of_symbol(x: usize, y: usize, symbol: u64) -> Self {
        Self(format!(
            "cell ({x}, {y}) is {symbol}, above the largest symbol {ABSENT}"
        ))
    }
}

/// Returns the error for a cell outside of a rectangle at the top left.
fn misplaced(x: usize, y: usize) -> GridError {
    GridError(format!(
        "cell ({x}, {y}) does not fit: the present cells must be a rectangle at the top left"
    ))
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

/// Letters of the reference implementation: `.brgyafotc` for the colours 0 to 9. An absent cell is a space.
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
