//! [`Clock`]: events in the order of their times. [`Generator`]: random draws from a seed.

use std::{cmp::Ordering, collections::BinaryHeap};

/// Events that have not happened yet, and the present time. Times are seconds since the start.
#[derive(Debug)]
pub struct Clock<E> {
    now: f64,
    /// Number of events that were ever set; the tie-breaker of equal times.
    count: u64,
    events: BinaryHeap<Entry<E>>,
}

#[derive(Debug)]
struct Entry<E> {
    at: f64,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Reversed, because a [`BinaryHeap`] returns the greatest entry first.
    fn order(&self, other: &Self) -> Ordering {
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

impl<E> Clock<E> {
    /// A clock at 0 without events.
    pub fn new() -> Self {
        Self {
            now: 0.0,
            count: 0,
            events: BinaryHeap::new(),
        }
    }

    /// Present time.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Lets `event` happen after `delay` seconds. Events of the same time happen in the order in which they were set.
    pub fn after(&mut self, delay: f64, event: E) {
        self.count += 1;
        self.events.push(Entry {
            at: self.now + delay.max(0.0),
            number: self.count,
            event,
        });
    }

    /// Goes to the next event and returns it; `None` if there is none before `end`.
    pub fn next_before(&mut self, end: f64) -> Option<E> {
        if self.events.peek()?.at >= end {
            return None;
        }
        let entry = self.events.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

/// Random numbers by SplitMix64 (Steele, Lea and Flood 2014): equal seeds give equal numbers on every machine.
#[derive(Debug)]
pub struct Generator(u64);

impl Generator {
    /// A generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `count`, which must be above 0.
    pub fn below(&mut self, count: usize) -> usize {
        ((self.share() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// A number of the normal distribution, cut at three standard deviations.
    pub fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        // The sum of twelve uniform numbers has variance 1 and is close to normal.
        let sum: f64 = (0..12).map(|_| self.share()).sum();
        mean + deviation * (sum - 6.0).clamp(-3.0, 3.0)
    }
}
