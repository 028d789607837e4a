//! The number of samples that may be drawn: a ratio of samples trained on to positions inserted.
//!
//! Samples that were allowed for a position and not drawn before it left the window are forgone. Without this rule, a learner that was
//! stopped for a while, or that begins on an old store, would draw the positions of the present window too often, because the positions
//! inserted before count as well. With it, the number of samples that are still allowed never exceeds `ratio` times the window.
//!
//! Samples are counted when they are requested, so that requested batches count as well. The ledger does no IO and reads no clock.

use serde::{Deserialize, Serialize};

/// Counts of samples and positions. Stored with each checkpoint, so that training resumes exactly there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawCounts {
    /// Samples trained on.
    pub samples: u64,
    /// Number of the next batch to draw.
    pub next_batch: u64,
    /// Positions inserted since the run began, those inserted into earlier stores of the run included.
    pub inserted: u64,
    /// Samples that were allowed for positions and not drawn while these were in the window.
    #[serde(default)]
    pub forgone: u64,
    /// Positions inserted by the store's own count when it was last read. A smaller count means that the store was replaced or has
    /// lost positions.
    pub store_inserted: u64,
    /// Line of training: a random number, by which the store knows the batches that were drawn for these weights. 0 in checkpoints of
    /// earlier releases.
    #[serde(default)]
    pub line: u64,
}

/// Counts samples against positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    samples_per_position: f64,
    min_positions: u64,
    /// The counts. Samples that were requested are counted as trained on.
    pub counts: DrawCounts,
    window: u64,
}

impl Ledger {
    /// Makes a ledger that continues from the counts of a checkpoint.
    pub fn new(samples_per_position: f64, min_positions: u64, counts: DrawCounts) -> Self {
        Self {
            samples_per_position,
            min_positions,
            counts,
            window: 0,
        }
    }

    /// Updates the ledger with the store's count of positions inserted and the number of positions in its window. A count below the last
    /// one means that the store was replaced or has lost positions. The positions that it contains at that time are not counted again.
    pub fn observe(&mut self, store_inserted: u64, window: u64) {
        if store_inserted < self.counts.store_inserted {
            tracing::warn!(
                was = self.counts.store_inserted,
                now = store_inserted,
                "the replay store holds fewer insertions than before: it was replaced or has lost some"
            );
            // The same positions must never be counted twice.
            self.counts.store_inserted = store_inserted;
        }
        self.counts.inserted += store_inserted - self.counts.store_inserted;
        self.counts.store_inserted = store_inserted;
        self.window = window;
        let retired = self.counts.inserted.saturating_sub(window);
        let due = (self.samples_per_position * retired as f64) as u64;
        self.counts.forgone += due.saturating_sub(self.counts.samples + self.counts.forgone);
    }

    /// Returns the number of whole batches that may be requested now, at least 1.
    ///
    /// # Errors
    /// None may be requested: the window is too small for training to begin, or the ratio of samples to positions is reached. The text
    /// is the reason for the wait.
    pub fn allowed(&self, batch_size: usize) -> Result<u64, String> {
        let (window, wanted) = (self.window, self.min_positions);
        if window < wanted {
            return Err(format!("waiting for the first positions: {window} of {wanted}"));
        }
        let most = (self.samples_per_position * self.counts.inserted as f64) as u64;
        match most.saturating_sub(self.counts.samples + self.counts.forgone) / (batch_size.max(1) as u64) {
            0 => Err(format!(
                "waiting for positions: {:.2} of {:.2} samples per position",
                (self.counts.samples + self.counts.forgone) as f64 / self.counts.inserted.max(1) as f64,
                self.samples_per_position
            )),
            batches => Ok(batches),
        }
    }

    /// Counts samples that were requested.
    pub fn take(&mut self, samples: u64) {
        self.counts.samples += samples;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ledger(counts: DrawCounts) -> Ledger {
        Ledger::new(2.0, 100, counts)
    }

    #[test]
    fn training_begins_with_enough_positions() {
        let mut ledger = ledger(DrawCounts::default());
        ledger.observe(99, 99);
        assert_eq!(
            ledger.allowed(10).unwrap_err(),
            "waiting for the first positions: 99 of 100"
        );
        ledger.observe(100, 100);
        assert_eq!(ledger.allowed(10), Ok(20));
    }

    #[test]
    fn the_reason_for_waiting_names_the_ratio() {
        let mut ledger = ledger(DrawCounts {
            samples: 1_980,
            inserted: 1_000,
            store_inserted: 1_000,
            ..DrawCounts::default()
        });
        ledger.observe(1_000, 1_000);
        assert_eq!(
            ledger.allowed(64).unwrap_err(),
            "waiting for positions: 1.98 of 2.00 samples per position"
        );
        assert_eq!(ledger.allowed(20), Ok(1));
    }

    #[test]
    fn a_new_store_counts_from_its_own_beginning_and_a_loss_is_not_counted_twice() {
        let mut ledger = ledger(DrawCounts {
            samples: 2_000,
            inserted: 1_000,
            store_inserted: 1_000,
            ..DrawCounts::default()
        });
        ledger.observe(0, 0);
        ledger.observe(300, 300);
        assert_eq!(ledger.counts.inserted, 1_300);
        ledger.observe(290, 290);
        ledger.observe(300, 300);
        assert_eq!(ledger.counts.inserted, 1_310);
    }

    #[test]
    fn samples_of_positions_that_left_the_window_are_forgone() {
        // The learner was stopped while 900,000 positions went through a window of 1,000.
        let stopped = DrawCounts {
            samples: 190_000,
            inserted: 100_000,
            store_inserted: 100_000,
            ..DrawCounts::default()
        };
        let mut ledger = ledger(stopped);
        ledger.observe(1_000_000, 1_000);
        assert_eq!(ledger.counts.forgone, 2 * 999_000 - 190_000);
        assert_eq!(ledger.allowed(1), Ok(2_000));
        ledger.take(1_500);
        ledger.observe(1_000_000, 1_000);
        assert_eq!(ledger.allowed(1), Ok(500));

        // A restart does not give forgone samples back.
        let counts = DrawCounts {
            samples: 191_500,
            inserted: ledger.counts.inserted,
            store_inserted: 1_000_000,
            forgone: ledger.counts.forgone,
            ..DrawCounts::default()
        };
        let mut resumed = Ledger::new(2.0, 100, counts);
        resumed.observe(1_000_100, 1_000);
        assert_eq!(resumed.allowed(1), Ok(700));
    }

    proptest! {
        /// However fast the window moves, the samples still allowed never exceed the ratio times the window.
        #[test]
        fn samples_allowed_never_exceed_the_ratio_times_the_window(
            moves in proptest::collection::vec((0u64..5_000, 0u64..20_000), 1..50),
            window in 1u64..4_000,
            ratio in 0.1f64..8.0,
        ) {
            let mut ledger = Ledger::new(ratio, 1, DrawCounts::default());
            let (mut inserted, mut used) = (0u64, 0);
            for (more, wanted) in moves {
                inserted += more;
                ledger.observe(inserted, inserted.min(window));
                let allowed = ledger.allowed(1).unwrap_or(0);
                prop_assert!(allowed as f64 <= ratio * inserted.min(window) as f64 + 1.0);
                ledger.take(allowed.min(wanted));
                used += allowed.min(wanted);
                prop_assert!(used as f64 <= ratio * inserted as f64);
            }
        }

        #[test]
        fn the_ratio_is_never_exceeded(
            insertions in proptest::collection::vec(0u64..500, 1..50),
            batch_size in 1usize..300,
            ratio in 0.1f64..8.0,
        ) {
            let mut ledger = Ledger::new(ratio, 1, DrawCounts::default());
            let (mut inserted, mut samples) = (0, 0);
            for more in insertions {
                inserted += more;
                ledger.observe(inserted, inserted);
                let batches = ledger.allowed(batch_size).unwrap_or(0);
                ledger.take(batches * batch_size as u64);
                samples += batches * batch_size as u64;
                prop_assert!(samples as f64 <= ratio * inserted as f64);
                // No further whole batch would have fitted.
                prop_assert!(inserted == 0 || (samples + batch_size as u64) as f64 > ratio * inserted as f64 - 1.0);
            }
        }
    }
}
