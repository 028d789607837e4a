//! A cache of positions, of limited size.

use std::{
    collections::HashMap,
    fmt, mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::Node;
use crate::Action;

/// Number of positions in each of the two generations of a cache.
const GENERATION: usize = 50_000;

type Positions = HashMap<(u64, Action), Arc<Node>>;

/// Positions by the number of the one before them and the action. The last 50,000 to 100,000 that were looked up are kept.
#[derive(Default)]
pub(super) struct Cache {
    ids: AtomicU64,
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: Positions,
    old: Positions,
}

impl Cache {
    /// Returns a number for a node.
    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the position after an action. `make` makes it if it is not kept; meanwhile other threads can use the cache.
    pub fn get_or_make(&self, before: u64, action: Action, make: impl FnOnce() -> Arc<Node>) -> Arc<Node> {
        let key = (before, action);
        if let Some(node) = self.lock().get(key) {
            return node;
        }
        let made = make();
        // Another thread may have made it too. All use the one that was kept first, so that its number is the only one.
        let mut generations = self.lock();
        match generations.get(key) {
            Some(node) => node,
            None => {
                generations.keep(key, Arc::clone(&made));
                made
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn get(&mut self, key: (u64, Action)) -> Option<Arc<Node>> {
        if let Some(node) = self.young.get(&key) {
            return Some(Arc::clone(node));
        }
        let node = self.old.remove(&key)?;
        self.keep(key, Arc::clone(&node));
        Some(node)
    }

    fn keep(&mut self, key: (u64, Action), node: Arc<Node>) {
        if self.young.len() >= GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(key, node);
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cache").finish_non_exhaustive()
    }
}
