//! A name that is served: what it points at now, and what keeps that up to date.

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

/// A name that is served. It changes between batches: requests that wait are answered by what it points at when their
/// turn comes.
#[derive(Debug)]
pub struct Slot {
    /// The name.
    pub name: ServedName,
    /// The name's text.
    pub text: String,
    /// Never unloaded to make room for others.
    pub is_pinned: bool,
    /// How often the cache knew what it was asked; `None` for a version, since there are ever new ones.
    cache_use: Option<CacheUse>,
    current: RwLock<Option<Arc<Model>>>,
    /// The number of the last use, over all slots: the least is the longest ago.
    used: AtomicU64,
    follower: Mutex<Option<AbortHandle>>,
}

impl Slot {
    /// A slot without a model.
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

    /// What it points at now.
    pub fn current(&self) -> Option<Arc<Model>> {
        self.current.read().clone()
    }

    /// Points at `model` from the next batch on, and gives what it pointed at until now.
    pub fn replace(&self, model: Option<Arc<Model>>) -> Option<Arc<Model>> {
        std::mem::replace(&mut *self.current.write(), model)
    }

    /// The cache knew the answers to so many positions, and not those to others.
    pub(crate) fn count_cache_use(&self, hits: u64, misses: u64, metrics: &Metrics) {
        let own = self.cache_use.as_ref();
        own.unwrap_or(&metrics.exact_cache_use).count(hits, misses);
    }

    /// Used just now, as the `number`th use of any slot.
    pub(crate) fn touch(&self, number: u64) {
        self.used.store(number, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What keeps it up to date from now on; what did so before is stopped.
    pub(crate) fn set_follower(&self, follower: Option<AbortHandle>) {
        if let Some(before) = std::mem::replace(&mut *self.follower.lock(), follower) {
            before.abort();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.set_follower(None);
    }
}
