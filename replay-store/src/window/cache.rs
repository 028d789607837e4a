//! Decoded games, up to a limit in bytes.
//!
//! Draws are uniform over the window, so no game is more likely to be asked for again than another, and the order
//! of arrival is as good an order of eviction as any. The hit rate is the part of the window that
//! fits; a window that fits whole (about 130 bytes a position for Paco Ŝako) is decoded once.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::record::decoded::Decoded;

/// The cache; shared by all samplers.
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
    /// A cache of at most `limit` bytes; 0 keeps nothing.
    pub fn new(limit: usize) -> Self {
        Self {
            inner: Mutex::default(),
            limit,
        }
    }

    /// The games with these sequence numbers, in order, `None` for each that is not here.
    pub fn get(&self, sequences: impl Iterator<Item = u64>) -> Vec<Option<Arc<Decoded>>> {
        let inner = self.inner.lock();
        sequences
            .map(|sequence| inner.games.get(&sequence).map(Arc::clone))
            .collect()
    }

    /// Keeps a game, at the cost of those that came first.
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

    /// Drops a game that was retired.
    pub fn remove(&self, sequence: u64) {
        let mut inner = self.inner.lock();
        inner.drop_game(sequence);
        // Its place in the order of arrival is swept up with others, now and then.
        let Inner { games, arrivals, .. } = &mut *inner;
        if arrivals.len() > 2 * games.len() + 64 {
            arrivals.retain(|arrival| games.contains_key(arrival));
        }
    }

    /// Bytes in use.
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
    use crate::{synthetic, window::sampler::Surprise};

    #[test]
    fn stays_within_its_bytes_and_keeps_the_latest() {
        let game = Arc::new(Decoded::new(&synthetic::game(1, 64), &Surprise::default()).unwrap());
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
    fn retired_games_leave_nothing_behind() {
        let game = Arc::new(Decoded::new(&synthetic::game(1, 64), &Surprise::default()).unwrap());
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
