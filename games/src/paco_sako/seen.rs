//! A set of states visited by a small search: the first few lie in place, only long searches allocate.

use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, DefaultHasher, Hash},
};

/// Most searches within a turn visit fewer states than this.
const IN_PLACE: usize = 24;

/// Distinct values, compared exactly. Its hasher is keyed the same way every time, so that no entropy is drawn.
pub(super) struct Seen<K> {
    first: [Option<K>; IN_PLACE],
    count: usize,
    rest: HashSet<K, BuildHasherDefault<DefaultHasher>>,
}

impl<K: Copy + Eq + Hash> Seen<K> {
    pub(super) fn new() -> Self {
        Self {
            first: [None; IN_PLACE],
            count: 0,
            rest: HashSet::default(),
        }
    }

    /// Number of distinct values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a value; `false` if it was there.
    pub(super) fn insert(&mut self, key: K) -> bool {
        if self.first[..self.count.min(IN_PLACE)].contains(&Some(key)) {
            return false;
        }
        if let Some(slot) = self.first.get_mut(self.count) {
            *slot = Some(key);
        } else if !self.rest.insert(key) {
            return false;
        }
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_new_values_from_old_ones_in_place_and_beyond() {
        let mut seen = Seen::new();
        for round in 0..2 {
            for value in 0..100_u64 {
                assert_eq!(seen.insert(value), round == 0, "{value}");
            }
        }
        assert_eq!(seen.len(), 100);
    }
}
