//! Batch sizes that batches are padded to. Providers are faster at shapes they have seen, so every size is warmed first.

/// Batch sizes, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    sizes: Vec<usize>,
}

/// [`Buckets::fine`] pads a batch by at most its size divided by this.
const FINEST: usize = 32;

/// A batch is cut if padding would be more than its size divided by this.
const MOST_PADDING: usize = 8;
/// Smallest size that a batch is cut to.
const LEAST_CUT: usize = 4;

impl Buckets {
    /// Returns the sizes up to `max_batch`: powers of two and, from 16 on, the sizes half-way between them, so that at most
    /// a third of a batch is padding.
    pub fn new(max_batch: usize) -> Self {
        let powers = (0..usize::BITS - 1).map(|power| 1_usize << power);
        let mut sizes: Vec<usize> = powers
            .flat_map(|size| [Some(size), (size >= 16).then_some(size + size / 2)])
            .flatten()
            .take_while(|&size| size < max_batch)
            .collect();
        sizes.push(max_batch.max(1));
        Self { sizes }
    }

    /// Returns the sizes for providers that gain nothing by padding. There is hardly any padding, and the number of sizes
    /// grows with the logarithm of the largest, since a provider may keep data for each size.
    pub fn fine(&self) -> Self {
        let mut sizes = Vec::new();
        let mut size = 1;
        while size < self.largest() {
            sizes.push(size);
            size += (size.next_power_of_two() / 2 / FINEST).max(1);
        }
        sizes.push(self.largest());
        Self { sizes }
    }

    /// Returns the powers of two and the largest size, for providers that prepare each size at a cost in memory.
    pub fn powers(&self) -> Self {
        let is_wanted = |size: &usize| size.is_power_of_two() || *size == self.largest();
        Self {
            sizes: self.sizes.iter().copied().filter(is_wanted).collect(),
        }
    }

    /// Returns every size up to the largest, so that nothing is padded.
    pub fn every_size(&self) -> Self {
        Self {
            sizes: (1..=self.largest()).collect(),
        }
    }

    /// Returns the sizes, ascending.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Returns the largest size.
    pub fn largest(&self) -> usize {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// Returns the number of `waiting` positions to take: all, unless much of the batch would be padding. Then as many as
    /// fill the next smaller size, and the others go into the next batch.
    pub fn cut(&self, waiting: usize) -> usize {
        let size = self.fit(waiting);
        let padding = size.saturating_sub(waiting);
        if padding * MOST_PADDING <= size {
            return size;
        }
        let place = self.sizes.partition_point(|&size| size <= waiting);
        let below = place.checked_sub(1).and_then(|place| self.sizes.get(place));
        // A small batch costs a whole call, so it is not cut further.
        below.filter(|&&size| size >= LEAST_CUT).copied().unwrap_or(size)
    }

    /// Returns the smallest size that holds `positions`, or the largest size.
    pub fn fit(&self, positions: usize) -> usize {
        let place = self.sizes.partition_point(|&size| size < positions);
        self.sizes.get(place).copied().unwrap_or_else(|| self.largest())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_are_powers_of_two_and_half_way_between() {
        assert_eq!(
            Buckets::new(128).sizes(),
            [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128]
        );
        assert_eq!(
            Buckets::new(100).sizes(),
            [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 100]
        );
        assert_eq!(Buckets::new(1).sizes(), [1]);
        assert_eq!(Buckets::new(100).powers().sizes(), [1, 2, 4, 8, 16, 32, 64, 100]);
        assert!(Buckets::new(64).fine().sizes().iter().copied().eq(1..=64));
    }

    #[test]
    fn a_batch_is_cut_if_much_of_it_would_be_padding() {
        let buckets = Buckets::new(64);
        let cuts =
            [1, 3, 5, 7, 11, 17, 21, 23, 24, 33, 42, 47, 57, 63, 64, 70].map(|waiting| buckets.cut(waiting));
        assert_eq!(cuts, [1, 4, 4, 8, 8, 16, 24, 24, 24, 32, 48, 48, 64, 64, 64, 64]);
        // Without padding nothing is cut.
        assert!((1..=64).all(|waiting| buckets.fine().cut(waiting) == waiting));
    }

    proptest! {
        #[test]
        fn a_batch_fits_and_little_is_padding(max in 1usize..5000, share in 0.0f64..=1.0) {
            let buckets = Buckets::new(max);
            prop_assert!(buckets.sizes().is_sorted());
            let positions = 1 + ((max - 1) as f64 * share) as usize;
            let size = buckets.fit(positions);
            prop_assert!(positions <= size && size <= max);
            prop_assert!(positions < 16 || 3 * size <= 3 * max.min(positions + positions / 2 + 1));
            let fine = buckets.fine();
            prop_assert!(fine.sizes().is_sorted() && fine.largest() == max && fine.sizes().len() <= 64 + 32 * 8);
            let size = fine.fit(positions);
            prop_assert!(positions <= size && size <= max && size <= positions + positions / 32);
        }
    }
}
