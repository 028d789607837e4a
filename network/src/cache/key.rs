//! Key of a cached evaluation, without the model.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A row and the policy indices of its legal actions, with their hash.
#[derive(Clone, Copy, Debug)]
pub struct CacheKey<'a> {
    row: &'a [u32],
    legal: &'a [u32],
    hash: u64,
}

impl<'a> CacheKey<'a> {
    /// Makes a key and hashes it.
    pub fn new(row: &'a [u32], legal: &'a [u32]) -> Self {
        let mut hasher = DefaultHasher::new();
        row.hash(&mut hasher);
        legal.hash(&mut hasher);
        Self {
            row,
            legal,
            hash: hasher.finish(),
        }
    }

    /// Makes a key whose hash is known already.
    pub fn hashed(row: &'a [u32], legal: &'a [u32], hash: u64) -> Self {
        debug_assert_eq!(hash, Self::new(row, legal).hash);
        Self { row, legal, hash }
    }

    /// Returns the row of the position.
    pub fn row(&self) -> &'a [u32] {
        self.row
    }

    /// Returns the policy indices of the legal actions.
    pub fn legal(&self) -> &'a [u32] {
        self.legal
    }

    /// Returns the hash of both. Different keys may have equal hashes.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// True if the key consists of this row and these legal actions.
    pub fn is(&self, row: &[u32], legal: &[u32]) -> bool {
        self.row == row && self.legal == legal
    }
}
