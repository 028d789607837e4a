//! Latest counts and validation batches of the replay store, for threads without a connection to it.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::data::batches::HostBatch;

/// Batches on which the losses of a network are measured.
#[derive(Debug)]
pub struct ValidationBatches {
    /// Positions of games that are held out of training.
    pub held_out: HostBatch,
    /// Positions of the games that training draws from.
    pub trained: HostBatch,
}

/// The store's last count of games, and the last validation batches.
#[derive(Debug, Default)]
pub struct StoreView {
    games_inserted: AtomicU64,
    validation: Mutex<Option<ValidationBatches>>,
}

impl StoreView {
    /// Returns the number of games inserted into the store.
    pub fn games_inserted(&self) -> u64 {
        self.games_inserted.load(Ordering::Relaxed)
    }

    pub(crate) fn set_games_inserted(&self, games: u64) {
        self.games_inserted.store(games, Ordering::Relaxed);
    }

    /// Removes and returns the newest validation batches, if some have come since the last call.
    pub fn take_validation(&self) -> Option<ValidationBatches> {
        self.validation.lock().take()
    }

    pub(crate) fn set_validation(&self, batches: ValidationBatches) {
        *self.validation.lock() = Some(batches);
    }
}
