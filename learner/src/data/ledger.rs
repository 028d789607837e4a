//! How many samples may be drawn: the ratio of samples trained on to positions inserted.
//!
//! Samples that were allowed for a position and not drawn before it left the window are forgone. Otherwise a learner that was
//! away, or one that begins on an old store, would spend on the present window what all the positions before it had been
//! allowed, and train on these few again and again. So of what lies in the window at most `ratio` samples for each position
//! are ever owed.
//!
//! Only what is asked of the stores is counted here, so that batches on their way count as well. Each store's own count is
//! remembered by its name, so that one that is away for a while, or comes late, is counted neither twice nor not at all. Pure;
//! no clock.

use std::collections::BTreeMap;

use crate::training::train::Progress;

/// Counts samples against positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    samples_per_position: f64,
    min_positions: u64,
    /// Samples trained on or on their way.
    samples: u64,
    /// Samples that were allowed for positions and not drawn while these were in the window.
    forgone: u64,
    /// Positions inserted, also into earlier stores.
    inserted: u64,
    /// The stores' own counts, by name.
    stores: BTreeMap<String, u64>,
    /// What was counted before stores were told apart, and none of them has been seen to hold yet.
    unnamed: u64,
    has_several: bool,
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
    /// Goes on from where training is, with the stores of these names.
    pub fn new(samples_per_position: f64, min_positions: u64, progress: &Progress, names: &[String]) -> Self {
        let mut stores = progress.stores.clone();
        let mut unnamed = 0;
        if stores.is_empty() {
            match names {
                // The one that there was before, whatever it is called now.
                [only] => {
                    stores.insert(only.clone(), progress.store_inserted);
                }
                _ => unnamed = progress.store_inserted,
            }
        }
        Self {
            samples_per_position,
            min_positions,
            samples: progress.samples,
            forgone: progress.forgone,
            inserted: progress.inserted,
            stores,
            unnamed,
            has_several: names.len() > 1,
            window: 0,
        }
    }

    /// Takes in what a store says. A count below its last one is that of another store; what it already holds
    /// counts as new, and what was inserted into the old one is not forgotten.
    pub fn observe(&mut self, name: &str, store_inserted: u64) {
        let Some(last) = self.stores.get_mut(name) else {
            let known = store_inserted.min(self.unnamed);
            self.unnamed -= known;
            self.inserted += store_inserted - known;
            self.stores.insert(name.to_owned(), store_inserted);
            return;
        };
        if store_inserted < *last {
            tracing::warn!(
                store = name,
                was = *last,
                now = store_inserted,
                "the replay store holds fewer insertions than before: it was replaced or has lost some"
            );
            // Losing a few is not a new store: never count the same positions twice.
            *last = store_inserted;
        }
        self.inserted += store_inserted - *last;
        *last = store_inserted;
    }

    /// Takes in how many positions there are to draw from, and how many in all windows, those of stores that are away included.
    pub fn set_window(&mut self, positions: u64, everywhere: u64) {
        self.window = positions;
        let retired = self.inserted.saturating_sub(everywhere);
        let due = (self.samples_per_position * retired as f64) as u64;
        self.forgone += due.saturating_sub(self.samples + self.forgone);
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
        match most.saturating_sub(self.samples + self.forgone) / (batch_size.max(1) as u64) {
            0 => Err(Waiting::More {
                ratio: (self.samples + self.forgone) as f64 / self.inserted.max(1) as f64,
                allowed: self.samples_per_position,
            }),
            batches => Ok(batches),
        }
    }

    /// A batch of so many samples is on its way.
    pub fn take(&mut self, samples: u64) {
        self.samples += samples;
    }

    /// Samples that were allowed and will not be drawn.
    pub fn forgone(&self) -> u64 {
        self.forgone
    }

    /// Positions inserted, also into earlier stores.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The stores' own counts together, as far as they were seen.
    pub fn store_inserted(&self) -> u64 {
        self.unnamed + self.stores.values().sum::<u64>()
    }

    /// The stores' own counts by name, where there are several.
    pub fn stores(&self) -> BTreeMap<String, u64> {
        if self.has_several {
            self.stores.clone()
        } else {
            BTreeMap::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn ledger(progress: &Progress) -> Ledger {
        Ledger::new(2.0, 100, progress, &names(&["store"]))
    }

    fn observe(ledger: &mut Ledger, inserted: u64, window: u64) {
        ledger.observe("store", inserted);
        ledger.set_window(window, window);
    }

    #[test]
    fn training_begins_with_enough_positions() {
        let mut ledger = ledger(&Progress::default());
        observe(&mut ledger, 99, 99);
        assert_eq!(
            ledger.allowed(10).unwrap_err().to_string(),
            "waiting for the first positions: 99 of 100"
        );
        observe(&mut ledger, 100, 100);
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
        observe(&mut ledger, 1_000, 1_000);
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
        observe(&mut ledger, 0, 0);
        observe(&mut ledger, 300, 300);
        assert_eq!(ledger.inserted(), 1_300);
        observe(&mut ledger, 290, 290);
        observe(&mut ledger, 300, 300);
        assert_eq!(ledger.inserted(), 1_310);
    }

    #[test]
    fn stores_that_come_late_go_away_and_were_not_told_apart_are_counted_once() {
        // 1,000 positions of the only store there was; it is one of three now, under a name of its own.
        let one = Progress {
            inserted: 1_200,
            store_inserted: 1_000,
            ..Progress::default()
        };
        let three = names(&["new", "newer", "old"]);
        let mut ledger = Ledger::new(2.0, 100, &one, &three);
        ledger.observe("new", 50);
        ledger.observe("old", 1_000);
        assert_eq!(ledger.inserted(), 1_250);
        ledger.observe("old", 1_030);
        assert_eq!((ledger.inserted(), ledger.store_inserted()), (1_280, 1_080));

        // Resumed while one is away: it counts when it is back, from where it was.
        let resumed = Progress {
            inserted: ledger.inserted(),
            store_inserted: ledger.store_inserted(),
            stores: ledger.stores(),
            ..Progress::default()
        };
        let mut ledger = Ledger::new(2.0, 100, &resumed, &three);
        ledger.observe("new", 60);
        assert_eq!(ledger.inserted(), 1_290);
        ledger.observe("old", 1_035);
        ledger.observe("newer", 7);
        assert_eq!(ledger.inserted(), 1_302);

        // One alone again: its own count goes on.
        let mut alone = Ledger::new(2.0, 100, &resumed, &names(&["old"]));
        assert!(alone.stores().is_empty());
        alone.observe("old", 1_031);
        assert_eq!(alone.inserted(), 1_281);
    }

    #[test]
    fn what_was_allowed_for_positions_that_left_the_window_is_forgone() {
        // Away while 900,000 positions went through a window of 1,000.
        let away = Progress {
            samples: 190_000,
            inserted: 100_000,
            store_inserted: 100_000,
            ..Progress::default()
        };
        let mut ledger = ledger(&away);
        observe(&mut ledger, 1_000_000, 1_000);
        assert_eq!(ledger.forgone(), 2 * 999_000 - 190_000);
        assert_eq!(ledger.allowed(1), Ok(2_000));
        ledger.take(1_500);
        observe(&mut ledger, 1_000_000, 1_000);
        assert_eq!(ledger.allowed(1), Ok(500));

        // A restart gives nothing back.
        let progress = Progress {
            samples: 191_500,
            inserted: ledger.inserted(),
            store_inserted: ledger.store_inserted(),
            forgone: ledger.forgone(),
            ..Progress::default()
        };
        let mut resumed = Ledger::new(2.0, 100, &progress, &names(&["store"]));
        observe(&mut resumed, 1_000_100, 1_000);
        assert_eq!(resumed.allowed(1), Ok(700));

        // A store that is away takes nothing along.
        resumed.set_window(400, 1_000);
        assert_eq!(resumed.allowed(1), Ok(700));
    }

    proptest! {
        /// No position is worth more than the ratio of samples that are still to be drawn, however fast the window moves.
        #[test]
        fn no_more_is_ever_owed_than_the_window_is_worth(
            moves in proptest::collection::vec((0u64..5_000, 0u64..20_000), 1..50),
            window in 1u64..4_000,
            ratio in 0.1f64..8.0,
        ) {
            let mut ledger = Ledger::new(ratio, 1, &Progress::default(), &names(&["store"]));
            let (mut inserted, mut used) = (0u64, 0);
            for (more, wanted) in moves {
                inserted += more;
                observe(&mut ledger, inserted, inserted.min(window));
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
            let mut ledger = Ledger::new(ratio, 1, &Progress::default(), &names(&["store"]));
            let (mut inserted, mut samples) = (0, 0);
            for more in insertions {
                inserted += more;
                observe(&mut ledger, inserted, inserted);
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
