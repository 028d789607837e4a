//! The transposition table: a fixed number of slots, the newest entry wins.

/// Bounds on the scores of positions, by key.
pub(super) struct Table {
    /// A key in the upper 56 bits, a byte below.
    slots: Box<[u64]>,
}

impl Table {
    /// A table of at most `bytes` bytes (but at least one slot).
    pub(super) fn new(bytes: usize) -> Self {
        // An odd number of slots, so that every bit of a key counts.
        let slots = ((bytes / size_of::<u64>()).max(2) - 1) | 1;
        Self {
            slots: vec![0; slots].into_boxed_slice(),
        }
    }

    /// What was put in for this key last, unless another key has taken its place.
    pub(super) fn get(&self, key: u64) -> Option<i8> {
        let slot = self.slots[self.place(key)];
        (slot >> 8 == key && slot as u8 != 0).then_some(slot as u8 as i8)
    }

    /// Keeps a `value`, which must not be 0, for a key.
    pub(super) fn put(&mut self, key: u64, value: i8) {
        let place = self.place(key);
        self.slots[place] = key << 8 | u64::from(value as u8);
    }

    fn place(&self, key: u64) -> usize {
        (key % self.slots.len() as u64) as usize
    }
}
