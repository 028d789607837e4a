//! How many samples may be drawn: the ratio of samples trained on to positions inserted.
//!
//! Only what is asked of the store is counted here, so that batches on their way count as well. Pure; no clock.

use crate::train::Progress;

/// Counts samples against positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    samples_per_position: f64,
    min_positions: u64,
    /// Samples trained on or on their way.
    samples: u64,
    /// Positions inserted, also into earlier stores.
    inserted: u64,
    /// The present store's own count.
    store_inserted: u64,
    window: u64,
}

/// What is being waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waiting {
    /// The first positions.
    First {
        /// Positions in the store's window.
        window: u64,
        /// Positions there must be.
        wanted: u64,
    },
    /// More positions: the ratio is reached.
    More {
        /// Samples for each position.
        ratio: f64,
        /// What is allowed.
        allowed: f64,
    },
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::First { window, wanted } => {
                write!(formatter, "waiting for the first positions: {window} of {wanted}")
            }
            Self::More { ratio, allowed } => write!(
                formatter,
                "waiting for positions: {ratio:.2} of {allowed:.2} samples per position"
            ),
        }
    }
}

impl Ledger {
    /// Goes on from where training is.
    pub fn new(samples_per_position: f64, min_positions: u64, progress: &Progress) -> Self {
        Self {
            samples_per_position,
            min_positions,
            samples: progress.samples,
            inserted: progress.inserted,
            store_inserted: progress.store_inserted,
            window: 0,
        }
    }

    /// Takes in what the store says. A count below the last one is that of another store; what it already holds
    /// counts as new, and what was inserted into the old one is not forgotten.
    pub fn observe(&mut self, store_inserted: u64, window: u64) {
        if store_inserted < self.store_inserted {
            tracing::warn!(
                was = self.store_inserted,
                now = store_inserted,
                "the replay store holds fewer insertions than before: it was replaced or has lost some"
            );
            // Losing a few is not a new store: never count the same positions twice.
            self.store_inserted = store_inserted;
        }
        self.inserted += store_inserted - self.store_inserted;
        self.store_inserted = store_inserted;
        self.window = window;
    }

    /// Whole batches that may be asked for now; else what is missing.
    ///
    /// # Errors
    /// [`Waiting`].
    pub fn allowed(&self, batch_size: usize) -> Result<u64, Waiting> {
        if self.window < self.min_positions {
            return Err(Waiting::First {
                window: self.window,
                wanted: self.min_positions,
            });
        }
        let most = (self.samples_per_position * self.inserted as f64) as u64;
        match most.saturating_sub(self.samples) / (batch_size.max(1) as u64) {
            0 => Err(Waiting::More {
                ratio: self.samples as f64 / self.inserted.max(1) as f64,
                allowed: self.samples_per_position,
            }),
            batches => Ok(batches),
        }
    }

    /// A batch of so many samples is on its way.
    pub fn take(&mut self, samples: u64) {
        self.samples += samples;
    }

    /// Positions inserted, also into earlier stores.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ledger(progress: &Progress) -> Ledger {
        Ledger::new(2.0, 100, progress)
    }

    #[test]
    fn training_begins_with_enough_positions() {
        let mut ledger = ledger(&Progress::default());
        ledger.observe(99, 99);
        assert_eq!(
            ledger.allowed(10).unwrap_err().to_string(),
            "waiting for the first positions: 99 of 100"
        );
        ledger.observe(100, 100);
        assert_eq!(ledger.allowed(10), Ok(20));
    }

    #[test]
    fn waiting_says_the_ratio() {
        let mut ledger = ledger(&Progress {
            samples: 1_980,
            inserted: 1_000,
            store_inserted: 1_000,
            ..Progress::default()
        });
        ledger.observe(1_000, 1_000);
        assert_eq!(
            ledger.allowed(64).unwrap_err().to_string(),
            "waiting for positions: 1.98 of 2.00 samples per position"
        );
        assert_eq!(ledger.allowed(20), Ok(1));
    }

    #[test]
    fn a_new_store_counts_from_its_own_beginning_and_a_loss_is_not_counted_twice() {
        let mut ledger = ledger(&Progress {
            samples: 2_000,
            inserted: 1_000,
            store_inserted: 1_000,
            ..Progress::default()
        });
        ledger.observe(0, 0);
        ledger.observe(300, 300);
        assert_eq!(ledger.inserted(), 1_300);
        ledger.observe(290, 290);
        ledger.observe(300, 300);
        assert_eq!(ledger.inserted(), 1_310);
    }

    proptest! {
        #[test]
        fn the_ratio_is_never_exceeded(
            insertions in proptest::collection::vec(0u64..500, 1..50),
            batch_size in 1usize..300,
            ratio in 0.1f64..8.0,
        ) {
            let mut ledger = Ledger::new(ratio, 1, &Progress::default());
            let (mut inserted, mut samples) = (0, 0);
            for more in insertions {
                inserted += more;
                ledger.observe(inserted, inserted);
                let batches = ledger.allowed(batch_size).unwrap_or(0);
                ledger.take(batches * batch_size as u64);
                samples += batches * batch_size as u64;
                prop_assert!(samples as f64 <= ratio * inserted as f64);
                // And no further whole batch would have fitted.
                prop_assert!(inserted == 0 || (samples + batch_size as u64) as f64 > ratio * inserted as f64 - 1.0);
            }
        }
    }
}
