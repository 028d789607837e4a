//! An exact cache of evaluations, bounded in bytes. The oldest entries are removed first.
//!
//! The key is everything that an evaluation depends on: the row, the policy indices of the legal actions, and the version
//! of the model. Keys are compared whole, so different inputs never share an entry, and a new version never gets the
//! answers of an old one. The idea is from dlchess, which used a hash as the key.
//!
//! All worker threads of an actor share one cache, and so do all clients of an inference server. The cache has shards with
//! a mutex each. Two threads that only looked up entries on two cores took 1.2 times as long per look-up as one thread
//! alone, so contention is low.

mod ring;

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    mem::size_of,
};

use games::MoverValue;
use parking_lot::Mutex;

use ring::Ring;

/// Number of shards of a large cache.
const SHARDS: usize = 16;
/// Smallest shard, in bytes. Small caches have fewer shards.
const SMALLEST_SHARD: usize = 256 * 1024;

/// Number of a model in this process. The user of a cache assigns a number to each model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionId(pub u32);

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

    /// Returns the hash of both. Different keys may have equal hashes.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// True if the key consists of this row and these legal actions.
    pub fn is(&self, row: &[u32], legal: &[u32]) -> bool {
        self.row == row && self.legal == legal
    }
}

/// A cache of evaluations that threads share.
///
/// ```
/// use games::MoverValue;
/// use network::cache::{Cache, CacheKey, VersionId};
///
/// let cache = Cache::new(1 << 20).expect("at least 4 KiB");
/// // A row, and the policy indices of its legal actions.
/// let key = CacheKey::new(&[4, 70, 130], &[0, 2]);
/// cache.insert(&key, VersionId(1), &[0.75, 0.25], MoverValue::new(0.5));
///
/// let mut priors = Vec::new();
/// let found = cache.find(&key, VersionId(1), &mut priors).expect("the evaluation was stored");
/// assert_eq!((found.get(), &priors[..]), (0.5, &[0.75, 0.25][..]));
/// assert!(cache.find(&key, VersionId(2), &mut priors).is_none());
/// ```
#[derive(Debug)]
pub struct Cache {
    shards: Box<[Mutex<Ring>]>,
}

/// Number and size of a cache's entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheContents {
    /// Number of evaluations.
    pub entries: u64,
    /// Memory in bytes: entries, hash tables, and gaps.
    pub bytes: u64,
}

impl Cache {
    /// Makes a cache of at most `bytes` bytes, all overhead included. `None` for less than 4 KiB.
    pub fn new(bytes: usize) -> Option<Self> {
        if bytes < 4096 {
            return None;
        }
        let most = (bytes / SMALLEST_SHARD).clamp(1, SHARDS);
        let count = 1 << most.ilog2();
        let each = bytes / count - size_of::<Mutex<Ring>>();
        let shards = (0..count).map(|_| Mutex::new(Ring::new(each))).collect();
        Some(Self { shards })
    }

    /// Looks up the value of an evaluation by `version`. Appends the priors to `priors`, in the order of the key's legal actions.
    pub fn find(&self, key: &CacheKey<'_>, version: VersionId, priors: &mut Vec<f32>) -> Option<MoverValue> {
        let value = self.shard(key).lock().find(key, version, priors)?;
        Some(MoverValue::new(value))
    }

    /// Stores an evaluation and removes the oldest ones to make room. An existing entry stays as it is. An evaluation larger than
    /// a shard is not stored.
    pub fn insert(&self, key: &CacheKey<'_>, version: VersionId, priors: &[f32], value: MoverValue) {
        self.shard(key).lock().insert(key, version, priors, value.get());
    }

    /// Removes all evaluations.
    pub fn clear(&self) {
        self.shards.iter().for_each(|shard| shard.lock().clear());
    }

    /// Returns the number and size of the entries.
    pub fn contents(&self) -> CacheContents {
        let mut contents = CacheContents::default();
        for shard in &self.shards {
            let ring = shard.lock();
            contents.entries += ring.entries() as u64;
            contents.bytes += (ring.bytes() + size_of::<Mutex<Ring>>()) as u64;
        }
        contents
    }

    fn shard(&self, key: &CacheKey<'_>) -> &Mutex<Ring> {
        // The count is a power of two. The tables use the hash's upper half.
        &self.shards[key.hash() as usize & (self.shards.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn memory_stays_within_the_limit() {
        for bytes in [4096, 10_000, 1 << 20, (1 << 20) + 13, 5 << 20] {
            let cache = Cache::new(bytes).unwrap();
            assert!(
                cache.contents().bytes <= bytes as u64,
                "{bytes}: {:?}",
                cache.contents()
            );
            assert!(
                cache.contents().bytes > bytes as u64 * 9 / 10,
                "and not much less"
            );
        }
        assert!(Cache::new(0).is_none());
    }

    proptest! {
        // Few distinct numbers, so that rows are often prefixes of each other, or equal but for the border.
        #[test]
        fn an_evaluation_is_found_only_by_its_own_key(
            asked in prop::collection::vec(
                (prop::collection::vec(0u32..3, 0..5), prop::collection::vec(0u32..3, 0..5), 0u32..3),
                1..200,
            )
        ) {
            let cache = Cache::new(1 << 20).unwrap();
            let mut truth = std::collections::HashMap::new();
            for (number, (row, legal, version)) in asked.iter().enumerate() {
                let key = CacheKey::new(row, legal);
                let version = VersionId(*version);
                let mut priors = Vec::new();
                let found = cache.find(&key, version, &mut priors);
                let known = truth.get(&(row.clone(), legal.clone(), version)).copied();
                prop_assert_eq!(found.map(MoverValue::get), known);
                if let Some(value) = known {
                    prop_assert_eq!(priors, vec![value; legal.len()]);
                } else {
                    let value = number as f32;
                    cache.insert(&key, version, &vec![value; legal.len()], MoverValue::new(value));
                    truth.insert((row.clone(), legal.clone(), version), value);
                }
            }
        }
    }

    #[test]
    fn a_position_is_found_in_whatever_order_its_moves_were_played() {
        use games::{Game as _, Notation as _, Symmetry, chess::Chess};

        let after = |moves: &str| {
            let mut state = Chess::start(&Default::default(), None).unwrap();
            for text in moves.split(' ') {
                let turn = state.read_turn(text).unwrap();
                turn.into_iter().for_each(|action| state.play(action).unwrap());
            }
            let (mut row, mut legal) = (Vec::new(), Vec::new());
            state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
            state.legal_actions(&mut legal);
            (row, legal)
        };
        let cache = Cache::new(1 << 20).unwrap();
        let (row, legal) = after("Nf3 Nf6 Nc3");
        let priors = vec![0.5; legal.len()];
        cache.insert(
            &CacheKey::new(&row, &legal),
            VersionId(0),
            &priors,
            MoverValue::new(0.25),
        );
        let find = |moves| {
            let (row, legal) = after(moves);
            cache.find(&CacheKey::new(&row, &legal), VersionId(0), &mut Vec::new())
        };
        assert_eq!(find("Nc3 Nf6 Nf3").map(MoverValue::get), Some(0.25));
        assert_eq!(find("Nf3 Nf6 Na3"), None);
    }

    #[test]
    fn threads_share_a_cache() {
        let cache = Cache::new(1 << 20).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let cache = &cache;
                scope.spawn(move || {
                    for number in 0..20_000u32 {
                        let row = [number % 5000, thread % 2, 1];
                        let key = CacheKey::new(&row, &[1, 2]);
                        let value = row[0] as f32;
                        let mut priors = Vec::new();
                        match cache.find(&key, VersionId(0), &mut priors) {
                            Some(known) => assert_eq!((known.get(), priors), (value, vec![value, 1.0])),
                            None => cache.insert(&key, VersionId(0), &[value, 1.0], MoverValue::new(value)),
                        }
                    }
                });
            }
        });
    }
}
