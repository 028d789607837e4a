//! [`Store`] and [`Learner`]: games become durable, and batches of them become training steps.

use std::collections::VecDeque;

/// A request to the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request {
    /// Append this number of positions.
    Append(f64),
    /// Draw this number of positions for the learner.
    Sample(f64),
}

/// The replay store. While it is down, finished games wait in the spools of the actors.
#[derive(Debug)]
pub struct Store {
    waiting: VecDeque<Request>,
    is_busy: bool,
    /// False while the process is down.
    pub is_alive: bool,
}

impl Store {
    /// A store that has nothing to do.
    pub fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            is_busy: false,
            is_alive: true,
        }
    }

    /// Takes a request.
    pub fn arrive(&mut self, request: Request) {
        self.waiting.push_back(request);
    }

    /// Begins the next request, if the store is idle and runs.
    pub fn begin(&mut self) -> Option<Request> {
        if self.is_busy || !self.is_alive {
            return None;
        }
        let next = *self.waiting.front()?;
        self.is_busy = true;
        Some(next)
    }

    /// The request that was begun is done.
    pub fn done(&mut self) -> Option<Request> {
        self.is_busy = false;
        self.waiting.pop_front()
    }

    /// The process ends. The request that was begun is repeated later, because it was not acknowledged.
    pub fn stop(&mut self) {
        self.is_alive = false;
        self.is_busy = false;
    }
}

/// Batches that a learner has asked for or received and not begun, at most, as in `learner/src/data/source.rs`.
const PREFETCHED: usize = 8;

/// The learner: trains on each stored position a given number of times, and asks for batches while it trains on others.
#[derive(Debug)]
pub struct Learner {
    batch: f64,
    samples_per_position: f64,
    /// Samples that may be drawn from the positions that are stored.
    allowed: f64,
    /// Batches that have come.
    ready: usize,
    /// Batches that were asked for and have not come.
    asked: usize,
    is_training: bool,
    /// False while the process is down.
    pub is_alive: bool,
}

impl Learner {
    /// A learner whose steps have `batch` samples.
    pub fn new(batch: f64, samples_per_position: f64) -> Self {
        Self {
            batch,
            samples_per_position,
            allowed: 0.0,
            ready: 0,
            asked: 0,
            is_training: false,
            is_alive: true,
        }
    }

    /// Positions have been stored.
    pub fn stored(&mut self, positions: f64) {
        self.allowed += positions * self.samples_per_position;
    }

    /// Samples to ask the store for, if a batch is wanted and allowed.
    pub fn ask(&mut self) -> Option<f64> {
        let is_wanted = self.is_alive && self.asked + self.ready < PREFETCHED && self.allowed >= self.batch;
        is_wanted.then(|| {
            self.asked += 1;
            self.allowed -= self.batch;
            self.batch
        })
    }

    /// A batch has come.
    pub fn received(&mut self) {
        if self.is_alive && self.asked > 0 {
            self.asked -= 1;
            self.ready += 1;
        }
    }

    /// Begins a step of this number of samples, if there is a batch.
    pub fn begin(&mut self) -> Option<f64> {
        if self.is_training || !self.is_alive || self.ready == 0 {
            return None;
        }
        self.ready -= 1;
        self.is_training = true;
        Some(self.batch)
    }

    /// The step is done; returns its samples.
    pub fn trained(&mut self) -> f64 {
        self.is_training = false;
        self.batch
    }

    /// The process ends. Batches that it had are drawn again, as remembered batches are.
    pub fn stop(&mut self) {
        let lost = self.ready + self.asked + usize::from(self.is_training);
        self.allowed += lost as f64 * self.batch;
        *self = Self {
            is_alive: false,
            ready: 0,
            asked: 0,
            is_training: false,
            ..*self
        };
    }
}
