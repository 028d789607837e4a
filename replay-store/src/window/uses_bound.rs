//! The bound on how often a position is used (Reverb's rate limiter): if the learner is ahead, batches wait; if the actors are ahead,
//! games wait.
//!
//! ```text
//! batches wait while   used + batch > max_uses · inserted
//! games wait while     sampled < min_uses · (inserted − slack)     and no batch is waiting
//! ```
//!
//! `used` is the number of samples plus the number of forgone uses: uses that were allowed for positions which left the window before
//! they were sampled that often. Without forgone uses, games that arrived while no learner ran would allow a learner to use the
//! positions of the present window far more than `max_uses` times.
//!
//! While a batch waits, for positions or for `max_uses`, games are accepted. This excludes a deadlock for every combination of settings
//! and counts. A client that needs positions without requesting a batch reports this with its request for statistics, and games are then
//! accepted for a limited time ([`UsesBound::record_waiting_learner`]).
//!
//! The counts are those of the ledger, so that they survive restarts. Positions are counted as sampled before they are sent.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::log::ledger::Ledger;

/// Time for which a report of a waiting learner is valid. Waiting learners repeat the report.
const REPORT_VALIDITY: Duration = Duration::from_secs(2);

/// Bounds on the mean number of uses of a position. 0 switches a bound off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Games wait while positions have been sampled less often than this.
    pub min_uses: f64,
    /// A batch waits if it would use positions more often than this.
    pub max_uses: f64,
    /// Number of positions that may be inserted before [`Bounds::min_uses`] applies.
    pub slack: u64,
}

impl Bounds {
    /// Returns the number of uses that are newly forgone if the window holds only `window` positions.
    pub fn forgone(&self, ledger: &Ledger, window: u64) -> u64 {
        let retired = ledger.positions_inserted.saturating_sub(window);
        let due = (self.max_uses.max(0.0) * retired as f64) as u64;
        due.saturating_sub(ledger.positions_used)
    }

    /// True if `positions` more positions may be sampled from a window of `window` positions.
    pub fn may_sample(&self, ledger: &Ledger, window: u64, positions: u64) -> bool {
        let used = ledger.positions_used + self.forgone(ledger, window);
        let most = self.max_uses * ledger.positions_inserted as f64;
        self.max_uses <= 0.0 || used.saturating_add(positions) as f64 <= most
    }

    /// True if [`Bounds::min_uses`] permits more games.
    pub fn may_insert(&self, ledger: &Ledger) -> bool {
        let ahead = ledger.positions_inserted.saturating_sub(self.slack) as f64;
        self.min_uses <= 0.0 || ledger.positions_sampled as f64 >= self.min_uses * ahead
    }
}

/// Counts of waiting batches and games, and the notification of waiting games.
#[derive(Debug, Default)]
pub struct UsesBound {
    batches: AtomicU64,
    games: AtomicU64,
    /// End of the validity of the last report of a waiting learner.
    reported_until: Mutex<Option<Instant>>,
    /// Changes whenever more games may be permitted.
    games_notified: watch::Sender<u64>,
}

/// Guard of a waiting batch or game, which counts as waiting until the guard is dropped.
#[derive(Debug)]
pub struct WaitGuard<'a>(&'a AtomicU64);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl UsesBound {
    /// Counts a waiting batch and notifies waiting games, because games are accepted while a batch waits.
    pub fn add_waiting_batch(&self) -> WaitGuard<'_> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.notify_games();
        WaitGuard(&self.batches)
    }

    /// Counts a waiting game.
    pub fn add_waiting_game(&self) -> WaitGuard<'_> {
        self.games.fetch_add(1, Ordering::SeqCst);
        WaitGuard(&self.games)
    }

    /// Records that a learner waits for positions without waiting for a batch; games are then accepted for two seconds.
    pub fn record_waiting_learner(&self) {
        *self.reported_until.lock() = Some(Instant::now() + REPORT_VALIDITY);
        self.notify_games();
    }

    /// True if games are accepted regardless of [`Bounds::min_uses`], because a batch or a learner waits for positions.
    pub fn are_positions_awaited(&self) -> bool {
        self.has_waiting_batches()
            || self
                .reported_until
                .lock()
                .is_some_and(|until| Instant::now() < until)
    }

    /// True if any batch waits.
    pub fn has_waiting_batches(&self) -> bool {
        self.batches.load(Ordering::SeqCst) > 0
    }

    /// True if any game waits.
    pub fn has_waiting_games(&self) -> bool {
        self.games.load(Ordering::SeqCst) > 0
    }

    /// Notifies waiting games that more of them may be permitted.
    pub fn notify_games(&self) {
        self.games_notified.send_modify(|times| *times += 1);
    }

    /// Returns a receiver that changes whenever more games may be permitted.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.games_notified.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// For all counts, a batch may be drawn, or it waits and games are accepted.
        #[test]
        fn batches_and_games_never_wait_for_each_other(min in 0.0f64..4.0, more in 0.0f64..4.0, slack in 0u64..1000, inserted in 0u64..100_000, window in 0u64..100_000, sampled in 0u64..400_000, batch in 1u64..5000) {
            let bounds = Bounds { min_uses: min, max_uses: min + more, slack };
            let ledger = Ledger { positions_inserted: inserted, positions_sampled: sampled, positions_used: sampled, ..Ledger::new() };
            let window = window.min(inserted);
            let uses_bound = UsesBound::default();
            let held = (!bounds.may_sample(&ledger, window, batch)).then(|| uses_bound.add_waiting_batch());
            prop_assert!(held.is_none() || uses_bound.has_waiting_batches());
            prop_assert!(bounds.may_sample(&ledger, window, batch) || bounds.may_insert(&ledger) || uses_bound.has_waiting_batches());
            drop(held);
            prop_assert!(!uses_bound.has_waiting_batches() && !uses_bound.are_positions_awaited());
            uses_bound.record_waiting_learner();
            prop_assert!(uses_bound.are_positions_awaited() && !uses_bound.has_waiting_batches());
        }
    }

    #[test]
    fn bounds_permit_exactly_the_configured_uses() {
        let ledger = |inserted, sampled| Ledger {
            positions_inserted: inserted,
            positions_sampled: sampled,
            positions_used: sampled,
            ..Ledger::new()
        };
        let bounds = Bounds {
            min_uses: 1.0,
            max_uses: 2.0,
            slack: 100,
        };
        assert!(bounds.may_sample(&ledger(100, 150), 100, 50));
        assert!(!bounds.may_sample(&ledger(100, 150), 100, 51));
        // 70 of 100 positions left the window. 140 uses of them were allowed and 130 were made.
        assert_eq!(bounds.forgone(&ledger(100, 130), 30), 10);
        assert!(bounds.may_sample(&ledger(100, 130), 30, 60));
        assert!(!bounds.may_sample(&ledger(100, 130), 30, 61));
        assert_eq!(bounds.forgone(&ledger(100, 150), 30), 0);
        assert!(bounds.may_insert(&ledger(300, 200)));
        assert!(!bounds.may_insert(&ledger(301, 200)));
        let off = Bounds::default();
        assert!(off.may_sample(&ledger(0, 0), 0, 1_000) && off.may_insert(&ledger(1_000, 0)));
    }
}
