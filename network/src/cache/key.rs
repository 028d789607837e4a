//! What is asked of a network, apart from which network.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A row and the policy indices that priors are wanted for.
#[derive(Clone, Copy, Debug)]
pub struct CacheKey<'a> {
    row: &'a [u32],
    legal: &'a [u32],
    hash: u64,
}

impl<'a> CacheKey<'a> {
    /// Hashes the key once, for the cache and for the list of what is being asked already.
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

    /// A key whose hash is known already.
    pub fn hashed(row: &'a [u32], legal: &'a [u32], hash: u64) -> Self {
        debug_assert_eq!(hash, Self::new(row, legal).hash);
        Self { row, legal, hash }
    }

    /// The row.
    pub fn row(&self) -> &'a [u32] {
        self.row
    }

    /// The policy indices.
    pub fn legal(&self) -> &'a [u32] {
        self.legal
    }

    /// A hash of both. Equal hashes do not mean equal questions.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Whether it is the same key, word for word.
    pub fn is(&self, row: &[u32], legal: &[u32]) -> bool {
        self.row == row && self.legal == legal
    }
}
