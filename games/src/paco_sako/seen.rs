//! Set of the states that a search has visited. The first few digests are stored inline; only long searches allocate.

use std::{
    collections::HashSet,
    hash::{BuildHasherDefault, Hasher},
};

use super::digest::Digest;

/// Number of digests stored inline. Most searches within a turn visit fewer states.
const IN_PLACE: usize = 24;

/// Set of digests.
pub(super) struct Seen {
    first: [Digest; IN_PLACE],
    count: usize,
    rest: HashSet<Digest, BuildHasherDefault<AlreadyHashed>>,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self {
            first: [0; IN_PLACE],
            count: 0,
            rest: HashSet::default(),
        }
    }

    /// Returns the number of digests.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a digest. Returns `false` if the set had it already.
    pub(super) fn insert(&mut self, digest: Digest) -> bool {
        if self.first[..self.count.min(IN_PLACE)].contains(&digest) {
            return false;
        }
        if let Some(slot) = self.first.get_mut(self.count) {
            *slot = digest;
        } else if !self.rest.insert(digest) {
            return false;
        }
        self.count += 1;
        true
    }
}

/// Hasher that returns the upper half of a digest, which is a hash already.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn write_u128(&mut self, digest: u128) {
        self.0 = (digest >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{super::digest::digest, *};

    #[test]
    fn insert_detects_known_digests_inline_and_in_the_heap_set() {
        let mut seen = Seen::new();
        for round in 0..2 {
            for value in 0..100 {
                assert_eq!(seen.insert(digest([value])), round == 0, "{value}");
            }
        }
        assert_eq!(seen.len(), 100);
    }
}
