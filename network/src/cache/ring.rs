//! One shard of the cache: entries back to back in a ring of words, the oldest overwritten first.
//!
//! An entry is contiguous: [`HEADER`] words, the row, the legal policy indices, one prior for each of them.
//! Where an entry does not fit before the end of the ring, a zero marks the gap and it is written at
//! the beginning. All memory is set aside once, so the bound is exact and nothing is allocated later.

use super::{CacheKey, VersionId};

/// Words before the row: length of the entry, hash, version, length of the row, legal actions, value.
const HEADER: usize = 6;
/// Bytes of the ring for each slot of the table: less than half of a small game's entry.
const BYTES_PER_SLOT: usize = 128;

#[derive(Debug)]
pub(super) struct Ring {
    words: Box<[u32]>,
    table: Table,
    /// Offset of the oldest entry.
    tail: usize,
    /// Offset of the next entry. Equal to `tail` in an empty ring and in a full one.
    head: usize,
    entries: usize,
}

impl Ring {
    /// Makes a ring that takes at most `bytes` bytes with its table.
    pub(super) fn new(bytes: usize) -> Self {
        let slots = 1 << (bytes / BYTES_PER_SLOT).max(2).ilog2();
        let table = Table::new(slots);
        let words = bytes.saturating_sub(table.bytes()) / size_of::<u32>();
        Self {
            words: vec![0; words].into(),
            table,
            tail: 0,
            head: 0,
            entries: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.table = Table::new(self.table.slots.len());
        (self.tail, self.head, self.entries) = (0, 0, 0);
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u32>() + self.table.bytes()
    }

    /// Looks up a value and appends its priors to `priors`.
    pub(super) fn find(&self, key: &CacheKey<'_>, version: VersionId, priors: &mut Vec<f32>) -> Option<f32> {
        let at = self.locate(key, version)?;
        let [_, _, found] = self.parts(at);
        priors.extend(found.iter().map(|&bits| f32::from_bits(bits)));
        Some(f32::from_bits(self.words[at + 5]))
    }

    /// Stores an evaluation, unless it is stored already or larger than the whole ring.
    pub(super) fn insert(&mut self, key: &CacheKey<'_>, version: VersionId, priors: &[f32], value: f32) {
        let CacheKey { row, legal, .. } = *key;
        debug_assert_eq!(priors.len(), legal.len(), "one prior for each legal action");
        let length = HEADER + row.len() + 2 * legal.len();
        let fits = length <= self.words.len() && priors.len() == legal.len();
        if !fits || self.locate(key, version).is_some() {
            return;
        }
        self.make_room(length);
        let at = self.head;
        let hash = table_hash(key, version);
        let header = [
            length as u32,
            hash,
            version.0,
            row.len() as u32,
            legal.len() as u32,
            value.to_bits(),
        ];
        let mut rest = &mut self.words[at..at + length];
        for part in [&header, row, legal] {
            let (own, others) = rest.split_at_mut(part.len());
            own.copy_from_slice(part);
            rest = others;
        }
        for (word, prior) in rest.iter_mut().zip(priors) {
            *word = prior.to_bits();
        }
        self.table.insert(hash, at as u32);
        self.head += length;
        self.entries += 1;
    }

    fn locate(&self, key: &CacheKey<'_>, version: VersionId) -> Option<usize> {
        let found = self.table.find(table_hash(key, version), |at| {
            let [row, legal, _] = self.parts(at as usize);
            self.words[at as usize + 2] == version.0 && key.is(row, legal)
        });
        found.map(|at| at as usize)
    }

    /// Returns row, legal policy indices and priors of the entry at an offset.
    fn parts(&self, at: usize) -> [&[u32]; 3] {
        let [row, legal] = [3, 4].map(|word| self.words[at + word] as usize);
        let (row, rest) = self.words[at + HEADER..].split_at(row);
        let (legal, rest) = rest.split_at(legal);
        [row, legal, &rest[..legal.len()]]
    }

    /// Removes the oldest entries until `length` words, which is at most the ring's, fit at `head`.
    fn make_room(&mut self, length: usize) {
        loop {
            if self.entries == 0 {
                (self.tail, self.head) = (0, 0);
                return;
            }
            let is_wrapped = self.head <= self.tail;
            let room = if is_wrapped { self.tail } else { self.words.len() } - self.head;
            if self.table.is_full() {
                self.remove_oldest();
            } else if room >= length {
                return;
            } else if is_wrapped {
                self.remove_oldest();
            } else {
                if room > 0 {
                    self.words[self.head] = 0;
                }
                self.head = 0;
            }
        }
    }

    fn remove_oldest(&mut self) {
        let length = self.words[self.tail] as usize;
        self.table.remove(self.words[self.tail + 1], self.tail as u32);
        self.entries -= 1;
        self.tail += length;
        if self.tail == self.words.len() || self.words[self.tail] == 0 {
            self.tail = 0;
        }
    }
}

/// Returns the upper half of the hash, which is independent of the choice of the shard.
fn table_hash(key: &CacheKey<'_>, version: VersionId) -> u32 {
    (key.hash() >> 32) as u32 ^ version.0.wrapping_mul(0x9e37_79b9)
}

/// At most this share of the slots is used.
const FULLEST: (usize, usize) = (3, 4);
const EMPTY: u64 = 0;

/// Finds offsets by hash: linear probing, with removal that leaves no tombstones, in memory that never grows. A first-in
/// first-out cache removes as often as it inserts, so a table with tombstones would be rebuilt again and again, which reads
/// every entry of the ring.
#[derive(Debug)]
struct Table {
    /// `hash << 32 | offset + 1`
    slots: Box<[u64]>,
    used: usize,
}

impl Table {
    /// Makes an empty table of `slots` slots, a power of two.
    fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        Self {
            slots: vec![EMPTY; slots].into(),
            used: 0,
        }
    }

    fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// True if an entry must be removed before the next insertion.
    fn is_full(&self) -> bool {
        (self.used + 1) * FULLEST.1 > self.slots.len() * FULLEST.0
    }

    /// Returns the first offset inserted with `hash` for which `is_it` holds.
    fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return None;
            }
            if hash_of(slot) == hash && is_it(offset_of(slot)) {
                return Some(offset_of(slot));
            }
            at = self.next(at);
        }
    }

    /// Inserts an offset under its hash. The table must not be full.
    fn insert(&mut self, hash: u32, offset: u32) {
        let mut at = self.home(hash);
        while self.slots[at] != EMPTY {
            at = self.next(at);
        }
        self.slots[at] = u64::from(hash) << 32 | (u64::from(offset) + 1);
        self.used += 1;
    }

    /// Removes an entry of [`Table::insert`], if it is there.
    fn remove(&mut self, hash: u32, offset: u32) {
        let sought = u64::from(hash) << 32 | (u64::from(offset) + 1);
        let mut at = self.home(hash);
        while self.slots[at] != sought {
            if self.slots[at] == EMPTY {
                return;
            }
            at = self.next(at);
        }
        self.close_gap(at);
        self.used -= 1;
    }

    /// Moves later entries of the same cluster into the gap, unless that would put an entry before its home slot.
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = self.next(at);
            let slot = self.slots[at];
            if slot == EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(self.home(hash_of(slot))) & mask;
            let from_gap = at.wrapping_sub(gap) & mask;
            if from_home >= from_gap {
                self.slots[gap] = slot;
                gap = at;
            }
        }
        self.slots[gap] = EMPTY;
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

fn hash_of(slot: u64) -> u32 {
    (slot >> 32) as u32
}

fn offset_of(slot: u64) -> u32 {
    slot as u32 - 1
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_remains_is_the_newest_in_order(
            bytes in 400usize..3000,
            sizes in prop::collection::vec((0usize..30, 0usize..20), 1..300),
        ) {
            let mut ring = Ring::new(bytes);
            prop_assert!(ring.bytes() <= bytes);
            let mut kept: VecDeque<(Vec<u32>, Vec<u32>)> = VecDeque::new();
            for (number, (row, legal)) in sizes.into_iter().enumerate() {
                let number = number as u32;
                let row: Vec<u32> = std::iter::once(number).chain((0..row as u32).map(|word| word * 7)).collect();
                let legal: Vec<u32> = (0..legal as u32).collect();
                let priors: Vec<f32> = legal.iter().map(|&index| (index + number) as f32).collect();
                let key = CacheKey::new(&row, &legal);
                ring.insert(&key, VersionId(number % 3), &priors, number as f32);
                let length = HEADER + row.len() + 2 * legal.len();
                match length > ring.words.len() {
                    true => prop_assert!(length * 4 + ring.table.bytes() > bytes - 4),
                    false => kept.push_back((row, legal)),
                }
                while kept.len() > ring.entries() {
                    kept.pop_front();
                }
                // What the ring still has is exactly the newest entries, and they are what was put in.
                let words: usize = kept.iter().map(|(row, legal)| HEADER + row.len() + 2 * legal.len()).sum();
                prop_assert!(words <= ring.words.len());
                for (row, legal) in &kept {
                    let number = row[0];
                    let mut priors = Vec::new();
                    let value = ring.find(&CacheKey::new(row, legal), VersionId(number % 3), &mut priors);
                    prop_assert_eq!(value, Some(number as f32));
                    prop_assert_eq!(priors, legal.iter().map(|&index| (index + number) as f32).collect::<Vec<_>>());
                    let other = ring.find(&CacheKey::new(row, legal), VersionId(number % 3 + 1), &mut Vec::new());
                    prop_assert_eq!(other, None);
                }
            }
        }
    }

    #[test]
    fn uses_the_room_it_has() {
        let mut ring = Ring::new(1 << 20);
        let legal: Vec<u32> = (0..35).collect();
        for number in 0..10_000u32 {
            let row: Vec<u32> = (0..38).map(|word| word + number).collect();
            ring.insert(&CacheKey::new(&row, &legal), VersionId(0), &[0.5; 35], 0.0);
        }
        let words = ring.entries() * (HEADER + 38 + 70);
        assert!(words * 4 > (1 << 20) * 9 / 10, "{} entries", ring.entries());
    }

    #[test]
    fn equal_hashes_are_told_apart() {
        let mut ring = Ring::new(4096);
        let (one, other) = (CacheKey::new(&[1], &[2]), CacheKey::new(&[3], &[4]));
        let hash = table_hash(&one, VersionId(0));
        ring.insert(&one, VersionId(0), &[1.0], 0.5);
        // A second entry under the first one's hash.
        ring.table.insert(hash, 0);
        assert_eq!(ring.find(&other, VersionId(0), &mut Vec::new()), None);
        assert_eq!(ring.find(&one, VersionId(0), &mut Vec::new()), Some(0.5));
        // A second insertion of the same entry does not change its value.
        ring.insert(&one, VersionId(0), &[1.0], 0.7);
        assert_eq!(ring.find(&one, VersionId(0), &mut Vec::new()), Some(0.5));
    }

    proptest! {
        // Hashes from a small range, so that clusters form, wrap around and overlap.
        #[test]
        fn the_table_agrees_with_a_plain_list(steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u32..6), 1..200)) {
            let mut table = Table::new(32);
            let mut list: Vec<(u32, u32)> = Vec::new();
            for (is_insert, hash, offset) in steps {
                let is_there = list.contains(&(hash, offset));
                if !is_insert {
                    table.remove(hash, offset);
                    list.retain(|&pair| pair != (hash, offset));
                } else if !is_there && !table.is_full() {
                    table.insert(hash, offset);
                    list.push((hash, offset));
                }
                prop_assert_eq!(table.used, list.len());
                for hash in 0..40 {
                    for offset in 0..6 {
                        let found = table.find(hash, |at| at == offset).is_some();
                        prop_assert_eq!(found, list.contains(&(hash, offset)));
                    }
                }
            }
        }
    }
}
