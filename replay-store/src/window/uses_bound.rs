//! The two-sided bound on uses of a position: whichever side is ahead waits for the other.
//!
//! ```text
//! batches wait while   used + batch > max_uses · inserted
//! games wait while     sampled < min_uses · (inserted − slack)     and no batch is waiting
//! ```
//!
//! Used is what was sampled, and what was allowed of positions that left the window before it was sampled: at any moment at most
//! `max_uses` samples are still to be had for each position of the window. Without that, games that came while nobody
//! trained would let somebody train on the present window as often as if it were all of them.
//!
//! (Reverb's rate limiter, with a slack on one side.) The last condition makes a deadlock impossible, whatever the
//! settings are and whatever a restart has done to the counts: a batch that waits, for more positions or for the bound,
//! lets games in, and so does a learner that waits for positions somewhere else: of another store, or of all stores together,
//! which may be behind each in its own way. All counts are the ledger's, so they survive restarts; positions are counted as sampled before they are sent.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::log::ledger::Ledger;

/// How long a word of somebody who waits elsewhere holds; they say it again.
const ELSEWHERE: Duration = Duration::from_secs(2);

/// Bounds on how often a position is used on average. 0 switches a bound off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Games are held back while positions have been used less often than this.
    pub min_uses: f64,
    /// Batches are held back that would use positions more often than this.
    pub max_uses: f64,
    /// Positions that may be inserted ahead of [`Bounds::min_uses`].
    pub slack: u64,
}

impl Bounds {
    /// Uses that are lost now that only `window` positions are left to draw from.
    pub fn forgone(&self, ledger: &Ledger, window: u64) -> u64 {
        let retired = ledger.positions_inserted.saturating_sub(window);
        let due = (self.max_uses.max(0.0) * retired as f64) as u64;
        due.saturating_sub(ledger.positions_used)
    }

    /// Whether `positions` more may be sampled from a window of `window` positions.
    pub fn may_sample(&self, ledger: &Ledger, window: u64, positions: u64) -> bool {
        let used = ledger.positions_used + self.forgone(ledger, window);
        let most = self.max_uses * ledger.positions_inserted as f64;
        self.max_uses <= 0.0 || used.saturating_add(positions) as f64 <= most
    }

    /// Whether more games may come in, as far as the samples go.
    pub fn may_insert(&self, ledger: &Ledger) -> bool {
        let ahead = ledger.positions_inserted.saturating_sub(self.slack) as f64;
        self.min_uses <= 0.0 || ledger.positions_sampled as f64 >= self.min_uses * ahead
    }
}

/// Who waits.
#[derive(Debug, Default)]
pub struct Gate {
    batches: AtomicU64,
    games: AtomicU64,
    /// Until when somebody waits elsewhere.
    elsewhere: Mutex<Option<Instant>>,
    /// Changes whenever more games might be let in.
    opened: watch::Sender<u64>,
}

/// One that waits, for as long as this lives.
#[derive(Debug)]
pub struct Waiting<'a>(&'a AtomicU64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Gate {
    /// A batch waits: games are let in.
    pub fn batch_waits(&self) -> Waiting<'_> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.open();
        Waiting(&self.batches)
    }

    /// A game waits.
    pub fn game_waits(&self) -> Waiting<'_> {
        self.games.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.games)
    }

    /// Somebody waits for positions, and not for a batch of this store: games are let in for a while.
    pub fn somebody_waits(&self) {
        *self.elsewhere.lock() = Some(Instant::now() + ELSEWHERE);
        self.open();
    }

    /// Whether games are let in because somebody waits for positions, here or elsewhere.
    pub fn lets_in(&self) -> bool {
        self.batches_wait() || self.elsewhere.lock().is_some_and(|until| Instant::now() < until)
    }

    /// Whether any batch waits.
    pub fn batches_wait(&self) -> bool {
        self.batches.load(Ordering::SeqCst) > 0
    }

    /// Whether any game waits.
    pub fn games_wait(&self) -> bool {
        self.games.load(Ordering::SeqCst) > 0
    }

    /// More games might be let in: samples were taken.
    pub fn open(&self) {
        self.opened.send_modify(|times| *times += 1);
    }

    /// Told whenever more games might be let in.
    pub fn opened(&self) -> watch::Receiver<u64> {
        self.opened.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the counts are, one side can move: a batch may be drawn, or it waits and games are let in.
        #[test]
        fn one_side_can_always_move(min in 0.0f64..4.0, more in 0.0f64..4.0, slack in 0u64..1000, inserted in 0u64..100_000, window in 0u64..100_000, sampled in 0u64..400_000, batch in 1u64..5000) {
            let bounds = Bounds { min_uses: min, max_uses: min + more, slack };
            let ledger = Ledger { positions_inserted: inserted, positions_sampled: sampled, positions_used: sampled, ..Ledger::new() };
            let window = window.min(inserted);
            let gate = Gate::default();
            let held = (!bounds.may_sample(&ledger, window, batch)).then(|| gate.batch_waits());
            prop_assert!(held.is_none() || gate.batches_wait());
            prop_assert!(bounds.may_sample(&ledger, window, batch) || bounds.may_insert(&ledger) || gate.batches_wait());
            drop(held);
            prop_assert!(!gate.batches_wait() && !gate.lets_in());
            gate.somebody_waits();
            prop_assert!(gate.lets_in() && !gate.batches_wait());
        }
    }

    #[test]
    fn bounds_are_exact() {
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
        // 70 of 100 positions have gone, and with them 10 uses more than were made.
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
