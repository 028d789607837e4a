//! Rows of five stones, found for all squares of a board at once.

use crate::wide::{MOST, WORDS, Wide};

/// Squares from which a row of five can run towards higher files, for boards of each side.
static RIGHTWARD: [Wide; MOST as usize + 1] = Wide::first_files(4);

/// True if five of these stones are in a row, on a board with sides of `side` squares.
pub(super) fn has_five(stones: &Wide, side: u32) -> bool {
    // Constant sides and few words make the usual boards quicker.
    match side {
        8 => has_row::<1>(stones, 8),
        15 => has_row::<4>(stones, 15),
        _ => has_row::<WORDS>(stones, side),
    }
}

/// True if one more stone, on one of the `empty` squares, makes five of these stones in a row.
pub(super) fn can_complete_five(stones: &Wide, empty: &Wide, side: u32) -> bool {
    match side {
        8 => can_complete_row::<1>(stones, empty, 8),
        15 => can_complete_row::<4>(stones, empty, 15),
        _ => can_complete_row::<WORDS>(stones, empty, side),
    }
}

/// Returns the shift of one step in each direction of rows, and the squares from which a row of five can run in it.
#[inline(always)]
fn directions<const N: usize>(side: u32) -> [(u32, Wide<N>); 4] {
    let right = RIGHTWARD.get(side as usize).unwrap_or(&Wide::EMPTY).narrow();
    [
        (1, right),
        (side, !Wide::EMPTY),
        (side + 1, right),
        (side - 1, right << 4),
    ]
}

/// As [`has_five`], for boards of at most `64·N` squares.
#[inline(always)]
fn has_row<const N: usize>(stones: &Wide, side: u32) -> bool {
    let stones: Wide<N> = stones.narrow();
    let found = directions(side)
        .into_iter()
        .fold(Wide::EMPTY, |found, (step, starts)| {
            let pairs = stones & stones >> step;
            let fours = pairs & pairs >> (2 * step);
            found | fours & fours >> step & starts
        });
    !found.is_empty()
}

/// As [`can_complete_five`], for boards of at most `64·N` squares.
#[inline(always)]
fn can_complete_row<const N: usize>(stones: &Wide, empty: &Wide, side: u32) -> bool {
    let found = directions(side)
        .into_iter()
        .fold(Wide::<N>::EMPTY, |found, (step, starts)| {
            let (mut stones, mut empty) = (stones.narrow(), empty.narrow());
            // Squares from which a row runs that has a stone on each square so far, and those whose row lacks one of them.
            let (mut full, mut lacking) = (starts, Wide::EMPTY);
            for _ in 0..5 {
                lacking = lacking & stones | full & empty;
                full = full & stones;
                (stones, empty) = (stones >> step, empty >> step);
            }
            found | lacking
        });
    !found.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Returns all rows of five, found square by square.
    fn rows_of_five(side: u32) -> Vec<Vec<u32>> {
        let inside = |rank: i32, file: i32| {
            let is_inside = rank < side as i32 && (0..side as i32).contains(&file);
            is_inside.then(|| rank as u32 * side + file as u32)
        };
        let directions = [(0, 1), (1, 0), (1, 1), (1, -1)];
        let starts = (0..side * side).flat_map(|square| directions.map(|direction| (square, direction)));
        let row = |(square, (up, right)): (u32, (i32, i32))| {
            let (rank, file) = ((square / side) as i32, (square % side) as i32);
            (0..5)
                .map(|step| inside(rank + up * step, file + right * step))
                .collect()
        };
        starts.filter_map(row).collect()
    }

    fn set(squares: impl IntoIterator<Item = u32>) -> Wide {
        squares
            .into_iter()
            .fold(Wide::EMPTY, |all, square| all | Wide::of(square))
    }

    #[test]
    fn five_in_a_row_win_and_four_of_them_do_not() {
        for side in [5, 8, 11, 15, 19] {
            let rows = rows_of_five(side);
            assert_eq!(
                rows.len() as u32,
                2 * side * (side - 4) + 2 * (side - 4) * (side - 4)
            );
            for row in rows {
                assert!(has_five(&set(row.iter().copied()), side));
                for &gap in &row {
                    let four = set(row.iter().copied()) & !Wide::of(gap);
                    assert!(!has_five(&four, side) && can_complete_five(&four, &Wide::of(gap), side));
                }
            }
        }
    }

    proptest! {
        /// `squares` holds 0 or 1 for a stone, 2 or 3 for an empty square, and 4 or 5 for a stone of the other player.
        #[test]
        fn rows_agree_with_a_search_square_by_square(side in 5..=19u32, squares in vec(0..6u8, 361)) {
            let of = |kinds: &[u8]| set((0..side * side).filter(|&at| kinds.contains(&squares[at as usize])));
            let (stones, empty) = (of(&[0, 1]), of(&[2, 3]));
            let rows = rows_of_five(side);
            let is_five = |row: &Vec<u32>| row.iter().all(|&square| stones.has(square));
            prop_assert_eq!(has_five(&stones, side), rows.iter().any(is_five));
            let lacks_one = |row: &Vec<u32>| {
                let count = |set: Wide| row.iter().filter(|&&square| set.has(square)).count();
                (count(stones), count(empty)) == (4, 1)
            };
            prop_assert_eq!(can_complete_five(&stones, &empty, side), rows.iter().any(lacks_one));
        }
    }
}
