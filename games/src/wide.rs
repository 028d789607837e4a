//! [`Wide`]: a set of squares of a board of up to 19×19 squares.

use std::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// Largest number of squares of a side.
pub(crate) const MOST: u32 = 19;
/// Words that hold 19×19 squares.
pub(crate) const WORDS: usize = 6;

/// Set of squares of a square board: the square `side·rank + file` is bit `square % 64` of word `square / 64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wide<const N: usize = WORDS>([u64; N]);

impl<const N: usize> Wide<N> {
    /// The empty set.
    pub const EMPTY: Self = Self([0; N]);

    /// Returns the first words of the set.
    pub fn narrow<const M: usize>(&self) -> Wide<M> {
        Wide(std::array::from_fn(|word| self.word(word)))
    }

    /// True if no square is in the set.
    pub fn is_empty(self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// Returns the word with this number; 0 if there is none.
    fn word(&self, number: usize) -> u64 {
        self.0.get(number).copied().unwrap_or_default()
    }

    fn zip(self, other: Self, op: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|word| op(self.0[word], other.0[word])))
    }
}

impl Wide {
    /// Returns the set of one square. Squares above 383 give the empty set.
    pub fn of(square: u32) -> Self {
        let mut set = Self::EMPTY;
        set.insert(square);
        set
    }

    /// Adds a square. Squares above 383 change nothing.
    pub fn insert(&mut self, square: u32) {
        if let Some(word) = self.0.get_mut(square as usize / 64) {
            *word |= 1 << (square % 64);
        }
    }

    /// Takes a square out.
    pub fn remove(&mut self, square: u32) {
        if let Some(word) = self.0.get_mut(square as usize / 64) {
            *word &= !(1 << (square % 64));
        }
    }

    /// Returns the set of the squares below `count`.
    pub fn below(count: u32) -> Self {
        let word = |word: usize| match count.saturating_sub(64 * word as u32) {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        };
        Self(std::array::from_fn(word))
    }

    /// Returns the squares of the first files of boards of each side from 0 to 19: all files but the last `cut`.
    pub const fn first_files(cut: u32) -> [Self; MOST as usize + 1] {
        let mut boards = [Self::EMPTY; MOST as usize + 1];
        let mut side = cut;
        while side <= MOST {
            let mut square = 0;
            while square < side * side {
                if square % side < side - cut {
                    boards[side as usize].0[square as usize / 64] |= 1 << (square % 64);
                }
                square += 1;
            }
            side += 1;
        }
        boards
    }

    /// True if the set holds a square.
    pub fn has(&self, square: u32) -> bool {
        self.word(square as usize / 64) >> (square % 64) & 1 == 1
    }

    /// Returns the number of squares of the set.
    pub fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the squares of the set, ascending. `for_each` is quicker than a loop.
    pub fn squares(self) -> impl Iterator<Item = u32> {
        let words = (0..).step_by(64).zip(self.0);
        words.flat_map(|(first, word)| crate::bits::squares(word).map(move |square| first + square))
    }
}

impl<const N: usize> BitAnd for Wide<N> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.zip(other, |one, two| one & two)
    }
}

impl<const N: usize> BitOr for Wide<N> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.zip(other, |one, two| one | two)
    }
}

impl<const N: usize> Not for Wide<N> {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }
}

/// Moves each square up by 1 to 63 squares.
impl<const N: usize> Shl<u32> for Wide<N> {
    type Output = Self;

    fn shl(self, by: u32) -> Self {
        let below = |word: usize| word.checked_sub(1).map_or(0, |below| self.0[below]);
        Self(std::array::from_fn(|word| {
            self.0[word] << by | below(word) >> (64 - by)
        }))
    }
}

/// Moves each square down by 1 to 63 squares. Squares that would be below 0 leave the set.
impl<const N: usize> Shr<u32> for Wide<N> {
    type Output = Self;

    fn shr(self, by: u32) -> Self {
        Self(std::array::from_fn(|word| {
            self.0[word] >> by | self.word(word + 1) << (64 - by)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{collection::btree_set, prelude::*};

    use super::*;

    fn set(squares: &BTreeSet<u32>) -> Wide {
        let sets = squares.iter().map(|&square| Wide::of(square));
        sets.fold(Wide::EMPTY, |all, one| all | one)
    }

    proptest! {
        #[test]
        fn sets_agree_with_ordered_sets(
            one in btree_set(0..384u32, 0..60),
            two in btree_set(0..384u32, 0..300),
            by in 1..64u32,
        ) {
            let (first, second) = (set(&one), set(&two));
            prop_assert!(first.squares().eq(one.iter().copied()));
            let mut removed = first;
            two.iter().for_each(|&square| removed.remove(square));
            prop_assert_eq!(removed, first & !second);
            prop_assert!((first & second).squares().eq(one.intersection(&two).copied()));
            prop_assert!((first | second).squares().eq(one.union(&two).copied()));
            prop_assert!((first & !second).squares().eq(one.difference(&two).copied()));
            let up = one.iter().map(|square| square + by).filter(|&square| square < 384);
            prop_assert!((first << by).squares().eq(up));
            prop_assert!((first >> by).squares().eq(one.iter().filter_map(|square| square.checked_sub(by))));
            prop_assert_eq!(first.count() as usize, one.len());
            prop_assert_eq!(first.is_empty(), one.is_empty());
            prop_assert!((0..500).all(|square| first.has(square) == one.contains(&square)));
            let narrow: Wide<2> = first.narrow();
            prop_assert_eq!(narrow.narrow::<WORDS>(), first & Wide::below(128));
        }
    }

    #[test]
    fn ranges_and_files_hold_their_squares() {
        for count in [0, 1, 63, 64, 65, 361, 384] {
            assert!(Wide::below(count).squares().eq(0..count));
        }
        for side in 4..=MOST {
            let files = (0..side * side).filter(|square| square % side < side - 4);
            assert!(Wide::first_files(4)[side as usize].squares().eq(files));
        }
        assert_eq!(Wide::of(384), Wide::EMPTY);
    }
}
