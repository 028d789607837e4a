//! Cache of decoded games, limited in bytes. The oldest entry is evicted first.
//!
//! Draws are uniform over the window, so that every game is equally likely to be drawn next and no eviction order is better than
//! another. The hit rate is the fraction of the window that fits. If all of the window fits (about 130 bytes for each position of
//! Paco Ŝako), each game is decoded once.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::record::decoded::Decoded;

/// The cache, shared by all samplers.
#[derive(Debug)]
pub struct Cache {
    inner: Mutex<Inner>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Inner {
    games: HashMap<u64, Arc<Decoded>>,
    arrivals: VecDeque<u64>,
    bytes: usize,
}

impl Cache {
    /// Returns an empty cache of at most `limit` bytes. With 0 nothing is cached.
    pub fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::default(),
            limit,
        }
    }

    /// Returns the games with these sequence numbers, in order; `None` for each game that is not cached.
    pub fn get(&self, sequences: impl Iterator<Item = u64>) -> Vec<Option<Arc<Decoded>>> {
        let inner = self.inner.lock();
        sequences
            .map(|sequence| inner.games.get(&sequence).map(Arc::clone))
            .collect()
    }

    /// Adds a game and evicts the oldest entries beyond the limit. A game larger than the limit is not cached.
    pub fn insert(&self, sequence: u64, game: &Arc<Decoded>) {
        let bytes = game.bytes();
        if bytes > self.limit {
            return;
        }
        let mut inner = self.inner.lock();
        if inner.games.insert(sequence, Arc::clone(game)).is_some() {
            return;
        }
        inner.arrivals.push_back(sequence);
        inner.bytes += bytes;
        while inner.bytes > self.limit
            && let Some(oldest) = inner.arrivals.pop_front()
        {
            inner.drop_game(oldest);
        }
    }

    /// Removes a game that was retired from the window.
    pub fn remove(&self, sequence: u64) {
        let mut inner = self.inner.lock();
        inner.drop_game(sequence);
        // The entry in `arrivals` is removed later, together with others.
        let Inner { games, arrivals, .. } = &mut *inner;
        if arrivals.len() > 2 * games.len() + 64 {
            arrivals.retain(|arrival| games.contains_key(arrival));
        }
    }

    /// Returns the number of bytes in use.
    pub fn bytes(&self) -> usize {
        self.inner.lock().bytes
    }
}

impl Inner {
    fn drop_game(&mut self, sequence: u64) {
        if let Some(game) = self.games.remove(&sequence) {
            self.bytes -= game.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn cache_stays_below_its_limit_and_keeps_the_newest_games() {
        let game = Arc::new(Decoded::new(&synthetic::game(1, 64)).unwrap());
        let cache = Cache::new(10 * game.bytes() + 5);
        for sequence in 0..100 {
            cache.insert(sequence, &game);
            cache.insert(sequence, &game);
            assert!(cache.bytes() <= 10 * game.bytes());
        }
        let found = cache.get(85..100);
        assert_eq!(found.iter().filter(|game| game.is_some()).count(), 10);
        assert!(found.last().unwrap().is_some());
        cache.remove(99);
        assert_eq!(cache.bytes(), 9 * game.bytes());
        assert!(cache.get(99..100)[0].is_none());
        Cache::new(0).insert(1, &game);
    }

    #[test]
    fn removed_games_use_no_memory() {
        let game = Arc::new(Decoded::new(&synthetic::game(1, 64)).unwrap());
        let cache = Cache::new(1 << 30);
        for sequence in 0..10_000 {
            cache.insert(sequence, &game);
            if sequence >= 10 {
                cache.remove(sequence - 10);
            }
        }
        assert_eq!(cache.bytes(), 10 * game.bytes());
        assert!(cache.inner.lock().arrivals.len() < 100);
    }
}
