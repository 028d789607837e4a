//! Discs as bits: bit `8·row + column`, row 0 at the bottom. File 7 and the two top ranks stay empty, so that no line wraps
//! around an edge.

/// All 42 cells.
pub(super) const CELLS: u64 = 0x0000_7f7f_7f7f_7f7f;
/// Column 0, over the whole height of the 8×8 board.
pub(super) const COLUMN: u64 = 0x0101_0101_0101_0101;
const BOTTOM: u64 = 0x7f;

/// Returns the cells on which the next disc of each column would land.
pub(super) const fn landings(occupied: u64) -> u64 {
    (occupied << 8 | BOTTOM) & !occupied & CELLS
}

/// Returns the columns in which any bit is set, as bits 0 to 6.
pub(super) const fn columns(cells: u64) -> u64 {
    let folded = cells | cells >> 32;
    let folded = folded | folded >> 16;
    (folded | folded >> 8) & BOTTOM
}

/// True if four of these discs are in a line.
pub(super) const fn has_four(discs: u64) -> bool {
    let mut found = 0;
    let mut direction = 0;
    while direction < 4 {
        let step = [1, 7, 8, 9][direction];
        let pairs = discs & discs >> step;
        found |= pairs & pairs >> (2 * step);
        direction += 1;
    }
    found != 0
}

/// Returns the mirror image of a set of cells: left and right are exchanged.
pub(super) const fn mirror(cells: u64) -> u64 {
    crate::bits::mirror(cells) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_in_a_line_are_found_and_three_of_them_are_not() {
        let lines = crate::discs::lines(6, 7, 4);
        assert_eq!(lines.len(), 69);
        for line in lines {
            assert!(has_four(line));
            for cell in crate::bits::squares(line) {
                assert!(!has_four(line & !(1 << cell)));
            }
        }
    }
}
