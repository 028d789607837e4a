//! Bitboards of the solver: seven bits for each column, of which the topmost stays empty. The cells of a column are
//! neighbours, and a position fits a 49-bit key.

use super::super::ConnectFour;

const WIDTH: u32 = 7;
const HEIGHT: u32 = 6;
const COLUMN_BITS: u32 = HEIGHT + 1;
/// Number of cells of the board.
pub(super) const CELLS: i32 = (WIDTH * HEIGHT) as i32;

/// Lowest bit of each column.
const BOTTOM: u64 = 0x0408_1020_4081;
const BOARD: u64 = BOTTOM * ((1 << HEIGHT) - 1);

/// Position in which nobody has four in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Discs of the player to act.
    own: u64,
    /// Discs of both players.
    occupied: u64,
    /// Number of discs.
    pub(super) discs: i32,
}

impl Position {
    pub(super) fn new(state: &ConnectFour) -> Self {
        let (own, other) = state.bitboards();
        Self {
            own: by_column(own),
            occupied: by_column(own | other),
            discs: state.discs() as i32,
        }
    }

    /// Returns the key of the position. A position and its mirror image have equal keys; any two others have different
    /// ones.
    pub(super) fn key(&self) -> u64 {
        // A column of h discs adds 2^h - 1 and a number not above that, so no two columns give the same sum.
        let key = self.own + self.occupied;
        key.min(mirror(key))
    }

    /// Returns the cells on which a disc can land: one for each column that is not full.
    pub(super) const fn landings(&self) -> u64 {
        (self.occupied + BOTTOM) & BOARD
    }

    /// Returns the landings that complete a line of the player to act.
    pub(super) const fn wins_at_once(&self) -> u64 {
        self.landings() & completions(self.own, self.occupied)
    }

    /// Returns the landings after which the opponent cannot win at once. Call it only if the player to act cannot win
    /// at once.
    pub(super) const fn safe_landings(&self) -> u64 {
        let landings = self.landings();
        let threats = completions(self.own ^ self.occupied, self.occupied);
        let forced = landings & threats;
        let answers = if forced == 0 {
            landings
        } else if forced & (forced - 1) == 0 {
            forced
        } else {
            0
        };
        // A disc directly below a threat would let the opponent complete a line there.
        answers & !(threats >> 1)
    }

    /// Returns the number of cells that would complete a line of the player to act after a disc on `landing`.
    pub(super) const fn threats_after(&self, landing: u64) -> u32 {
        completions(self.own | landing, self.occupied).count_ones()
    }

    /// Returns the position after a disc on `landing`.
    pub(super) const fn after(&self, landing: u64) -> Self {
        Self {
            own: self.own ^ self.occupied,
            occupied: self.occupied | landing,
            discs: self.discs + 1,
        }
    }
}

/// Returns those of `cells` that lie in a column, 0 to 6.
pub(super) const fn in_column(cells: u64, column: u32) -> u64 {
    cells & (((1 << HEIGHT) - 1) << (column * COLUMN_BITS))
}

/// Moves each bit `8·row + column` to bit `7·column + row`.
fn by_column(cells: u64) -> u64 {
    crate::bits::squares(cells).fold(0, |bits, cell| bits | 1 << ((cell % 8) * COLUMN_BITS + cell / 8))
}

/// Returns the mirror image: the columns are in reverse order, each with its seven bits unchanged.
const fn mirror(bits: u64) -> u64 {
    const COLUMN: u64 = (1 << COLUMN_BITS) - 1;
    let centre = bits & COLUMN << (3 * COLUMN_BITS);
    let inner = (bits & COLUMN << (2 * COLUMN_BITS)) << (2 * COLUMN_BITS)
        | bits >> (2 * COLUMN_BITS) & COLUMN << (2 * COLUMN_BITS);
    let middle = (bits & COLUMN << COLUMN_BITS) << (4 * COLUMN_BITS)
        | bits >> (4 * COLUMN_BITS) & COLUMN << COLUMN_BITS;
    let outer = (bits & COLUMN) << (6 * COLUMN_BITS) | bits >> (6 * COLUMN_BITS) & COLUMN;
    centre | inner | middle | outer
}

/// Returns the empty cells that would complete a line of four of `discs`. A disc need not be able to land there.
const fn completions(discs: u64, occupied: u64) -> u64 {
    // A vertical line grows only upwards.
    let mut cells = discs << 1 & discs << 2 & discs << 3;
    let mut axis = 0;
    while axis < 3 {
        let step = [COLUMN_BITS - 1, COLUMN_BITS, COLUMN_BITS + 1][axis];
        let below = discs << step & discs << (2 * step);
        let above = discs >> step & discs >> (2 * step);
        cells |= below & discs << (3 * step);
        cells |= below & discs >> step;
        cells |= above & discs >> (3 * step);
        cells |= above & discs << step;
        axis += 1;
    }
    cells & BOARD & !occupied
}
