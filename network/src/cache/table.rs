//! Finds offsets by hash: linear probing, with removal that leaves no tombstones, in memory that never grows.
//!
//! A first-in first-out cache removes as often as it inserts; a table with tombstones would have to be
//! rebuilt again and again, reading every entry of the ring.

/// At most this share of the slots is used.
const FULLEST: (usize, usize) = (3, 4);
const EMPTY: u64 = 0;

#[derive(Debug)]
pub(super) struct Table {
    /// `hash << 32 | offset + 1`
    slots: Box<[u64]>,
    used: usize,
}

impl Table {
    /// Makes an empty table of `slots` slots, a power of two.
    pub(super) fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        Self {
            slots: vec![EMPTY; slots].into(),
            used: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// True if an entry must be removed before the next insertion.
    pub(super) fn is_full(&self) -> bool {
        (self.used + 1) * FULLEST.1 > self.slots.len() * FULLEST.0
    }

    /// Returns the first offset inserted with `hash` for which `is_it` holds.
    pub(super) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
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
    pub(super) fn insert(&mut self, hash: u32, offset: u32) {
        let mut at = self.home(hash);
        while self.slots[at] != EMPTY {
            at = self.next(at);
        }
        self.slots[at] = u64::from(hash) << 32 | (u64::from(offset) + 1);
        self.used += 1;
    }

    /// Removes an entry of [`Table::insert`], if it is there.
    pub(super) fn remove(&mut self, hash: u32, offset: u32) {
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Hashes from a small range, so that clusters form, wrap around and overlap.
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u32..6), 1..200)) {
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
