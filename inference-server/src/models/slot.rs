//! One served name: the model it points at, and the task that keeps it up to date.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tokio::task::AbortHandle;

use crate::{
    metrics::{CacheUse, Metrics},
    models::names::ServedName,
};
use network::model::Model;

/// A served name. Its model changes between batches: waiting requests are computed by the model that the name points at
/// when their batch is formed.
#[derive(Debug)]
pub struct ModelSlot {
    /// Parsed name.
    pub name: ServedName,
    /// Canonical text of the name.
    pub text: String,
    /// True if the name is never unloaded to make room for others.
    pub is_pinned: bool,
    /// Cache hits and misses. `None` for a version: all versions share one series.
    cache_use: Option<CacheUse>,
    current: RwLock<Option<Arc<Model>>>,
    /// Number of the last use, counted over all slots. The smallest is the least recent.
    used: AtomicU64,
    follower: Mutex<Option<AbortHandle>>,
}

impl ModelSlot {
    /// Makes a slot without a model.
    pub fn new(name: ServedName, is_pinned: bool) -> Self {
        let text = name.to_string();
        Self {
            cache_use: (!name.is_exact()).then(|| CacheUse::new(&text)),
            text,
            name,
            is_pinned,
            current: RwLock::new(None),
            used: AtomicU64::new(0),
            follower: Mutex::default(),
        }
    }

    /// Returns the model that the name points at now.
    pub fn current(&self) -> Option<Arc<Model>> {
        self.current.read().clone()
    }

    /// Points the name at `model` from the next batch on. Returns the previous model.
    pub fn replace(&self, model: Option<Arc<Model>>) -> Option<Arc<Model>> {
        std::mem::replace(&mut *self.current.write(), model)
    }

    /// Records cache hits and misses, in positions.
    pub(crate) fn count_cache_use(&self, hits: u64, misses: u64, metrics: &Metrics) {
        let own = self.cache_use.as_ref();
        own.unwrap_or(&metrics.exact_cache_use).count(hits, misses);
    }

    /// Marks the slot as used. `number` counts the uses of all slots.
    pub(crate) fn touch(&self, number: u64) {
        self.used.store(number, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Sets the task that keeps the slot up to date, and stops the previous one.
    pub(crate) fn set_follower(&self, follower: Option<AbortHandle>) {
        if let Some(before) = std::mem::replace(&mut *self.follower.lock(), follower) {
            before.abort();
        }
    }
}

impl Drop for ModelSlot {
    fn drop(&mut self) {
        self.set_follower(None);
    }
}
