//! The exact evaluation cache: what the network said about a row before, first in first out, bounded in bytes.
//!
//! The key is everything the answer depends on: the row, the policy indices that priors are wanted for, and
//! the model's version. Keys are compared whole, so two different inputs can never share an entry, and a new version
//! is never answered by an old one. The idea is dlchess's; its key was a hash.
//!
//! | module | what it is for |
//! |---|---|
//! | [`key`] | what is asked: a row and its legal policy indices, hashed once |
//! | [`ring`] | one shard: entries back to back in a ring of words |
//! | [`table`] | finds an entry of the ring by hash |
//!
//! Actors have one, shared by all worker threads, so that games of one thread profit from another's; and the inference
//! server may have one, shared by all of its clients. It is cut into
//! shards with a mutex each; first in, first out holds in each shard. Two threads that did nothing but look things
//! up on two cores needed 1.2 times as long for each as one alone did, so nobody waits for a mutex.

mod key;
mod ring;
mod table;

use std::mem::size_of;

use games::MoverValue;
use parking_lot::Mutex;

pub use key::CacheKey;
use ring::{Inserted, Ring};

/// A model's number in this process: who uses a cache gives each model one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionId(pub u32);

/// Shards of a large cache.
const SHARDS: usize = 16;
/// A shard is no smaller than this, so that small caches have fewer.
const SMALLEST_SHARD: usize = 256 * 1024;

/// What the network said, as the cache hands it out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachedEvaluation {
    /// The value, from the mover's point of view.
    pub value: MoverValue,
    /// Which model said so.
    pub version: VersionId,
}

/// An evaluation cache that threads share.
#[derive(Debug)]
pub struct Cache {
    shards: Box<[Mutex<Ring>]>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheContents {
    /// Evaluations.
    pub entries: u64,
    /// Memory set aside: entries, the table that finds them, and the gaps.
    pub bytes: u64,
    /// Evaluations that were too large for a shard.
    pub too_large: u64,
}

impl Cache {
    /// A cache of at most `bytes` bytes, all overhead included; `None` for fewer than 4 KiB, which hold nothing of use.
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

    /// Looks an evaluation up; its priors are appended to `priors`, in the order of the key's legal actions.
    pub fn find(
        &self,
        key: &CacheKey<'_>,
        version: VersionId,
        priors: &mut Vec<f32>,
    ) -> Option<CachedEvaluation> {
        let value = self.shard(key).lock().find(key, version, priors)?;
        Some(CachedEvaluation {
            value: MoverValue::new(value),
            version,
        })
    }

    /// Keeps an evaluation; the oldest make room for it. One that is there already stays as it is.
    pub fn insert(&self, key: &CacheKey<'_>, version: VersionId, priors: &[f32], value: MoverValue) {
        let inserted = self.shard(key).lock().insert(key, version, priors, value.get());
        debug_assert!(inserted != Inserted::Mismatch, "one prior for each legal action");
    }

    /// What it holds now.
    pub fn contents(&self) -> CacheContents {
        let mut contents = CacheContents::default();
        for shard in &self.shards {
            let ring = shard.lock();
            contents.entries += ring.entries() as u64;
            contents.bytes += (ring.bytes() + size_of::<Mutex<Ring>>()) as u64;
            contents.too_large += ring.too_large();
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
    fn never_takes_more_than_it_was_given() {
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
        fn an_answer_is_for_the_very_question(
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
                prop_assert_eq!(found.map(|known| known.value.get()), known);
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
    fn threads_share_it() {
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
                            Some(known) => assert_eq!((known.value.get(), priors), (value, vec![value, 1.0])),
                            None => cache.insert(&key, VersionId(0), &[value, 1.0], MoverValue::new(value)),
                        }
                    }
                });
            }
        });
    }
}
