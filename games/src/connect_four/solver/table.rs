//! Transposition table with a fixed number of slots. A new entry replaces the old one of its slot.

/// Bounds on the scores of positions, by key.
pub(super) struct Table {
    /// Slots, each with a key in the upper 56 bits and a value in the lowest byte.
    slots: Box<[u64]>,
}

impl Table {
    /// Makes a table of at most `bytes` bytes, but at least one slot.
    pub(super) fn new(bytes: usize) -> Self {
        // The number of slots is odd, so that the slot depends on every bit of a key.
        let slots = ((bytes / size_of::<u64>()).max(2) - 1) | 1;
        Self {
            slots: vec![0; slots].into_boxed_slice(),
        }
    }

    /// Returns the last value of a key. `None` if there is none, or another key took its slot.
    pub(super) fn get(&self, key: u64) -> Option<i8> {
        let slot = self.slots[self.place(key)];
        (slot >> 8 == key && slot as u8 != 0).then_some(slot as u8 as i8)
    }

    /// Stores `value`, which must not be 0, for a key.
    pub(super) fn put(&mut self, key: u64, value: i8) {
        let place = self.place(key);
        self.slots[place] = key << 8 | u64::from(value as u8);
    }

    fn place(&self, key: u64) -> usize {
        (key % self.slots.len() as u64) as usize
    }
}
