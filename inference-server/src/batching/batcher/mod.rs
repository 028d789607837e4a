//! Decides when a batch is formed: continuous batching by back-pressure.
//!
//! Requests gather while the device works. When the device is free, it gets the requests that have gathered, without any
//! timer. If a batch of the largest size gathers earlier, it is formed at once and waits beside the device, so that the
//! device never waits for it.
//!
//! An idle device gets what has arrived as soon as nothing more arrives. Clients that wait for each answer before they send
//! the next request would otherwise all be in one batch or in none, and the device and the sockets would work in turns. So
//! the device gets a batch as soon as half of the recent requests are back, and the other half gathers meanwhile. Requests
//! are counted whole for this and never split.
//!
//! While the device is idle, a request may wait for others up to `max_wait` (0 by default). The runtime's timers tick in
//! milliseconds, so such a wait may end up to one millisecond late.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    batching::{
        device_speed::DeviceSpeed,
        job::Job,
        queue::{self, FormedBatch, Queue, QueueLength},
    },
    metrics::Metrics,
    requests::{
        refusal::Refusal,
        request::{ClientId, Priority},
    },
};

/// Largest number of yields while more requests arrive.
const MOST_YIELDS: usize = 16;
/// Largest number of yields while fewer than half of the recent requests are back.
const MOST_YIELDS_FOR_HALF: usize = 256;

/// Settings of the batcher.
#[derive(Clone, Debug)]
pub struct BatchingPolicy {
    /// Largest batch, in positions.
    pub max_batch: usize,
    /// Longest time for which a request waits for others while the device is idle.
    pub max_wait: Duration,
    /// Largest number of waiting positions.
    pub max_queue: usize,
}

/// Queue of requests, and the task that forms batches of them.
#[derive(Debug)]
pub struct Batcher {
    queue: Mutex<Queue>,
    /// Notified when a request is queued or the device becomes idle.
    changed: Notify,
    /// Number of batches that the device has and has not finished.
    at_device: AtomicUsize,
    /// Half of the requests that waited or had just been answered when the device last became idle.
    half: AtomicUsize,
    /// Speed of the device, for retry hints.
    speed: Mutex<DeviceSpeed>,
    policy: BatchingPolicy,
    metrics: Arc<Metrics>,
}

impl Batcher {
    /// Makes a batcher with an empty queue.
    pub fn new(policy: BatchingPolicy, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue::new(policy.max_queue)),
            changed: Notify::new(),
            at_device: AtomicUsize::new(0),
            half: AtomicUsize::new(0),
            speed: Mutex::new(DeviceSpeed::default()),
            policy,
            metrics,
        })
    }

    /// Queues a request.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`] with the time after which a retry may succeed.
    pub fn push(&self, job: Arc<Job>) -> Result<(), Refusal> {
        let (pushed, waiting) = {
            let mut queue = self.queue.lock();
            let (pushed, waiting) = (queue.push(job), queue.waiting().positions);
            // Set under the lock, so that the gauge ends with the last value.
            self.metrics.waiting(waiting);
            (pushed, waiting)
        };
        match pushed {
            Ok(()) => {
                // While the device works, only a batch of the largest size is formed, so the task need not wake. A batch that
                // finishes after this read wakes the task, which then sees this request.
                if waiting >= self.policy.max_batch || self.at_device.load(Ordering::Acquire) == 0 {
                    self.changed.notify_one();
                }
                Ok(())
            }
            Err(Refusal::QueueFull { waiting, most, .. }) => Err(Refusal::QueueFull {
                waiting,
                most,
                retry_after_ms: self.speed.lock().time_for(waiting).as_millis() as u64,
            }),
            other => other,
        }
    }

    /// Returns the number of waiting requests and positions.
    pub fn waiting(&self) -> QueueLength {
        self.queue.lock().waiting()
    }

    /// Returns the largest number of positions that a request of this priority may have. A larger one never fits.
    pub fn most_of(&self, priority: Priority) -> usize {
        queue::limit_of(priority, self.policy.max_queue)
    }

    /// Removes the requests that a client has given up, which makes room for others.
    pub fn sweep(&self, client: ClientId) {
        let mut queue = self.queue.lock();
        queue.sweep(client, Instant::now());
        self.metrics.waiting(queue.waiting().positions);
        self.metrics.cancelled(queue.take_dropped().cancelled);
    }

    /// Records that the device has finished a batch of `positions` positions from `requests` requests.
    pub fn finished(&self, positions: usize, requests: usize) {
        self.speed.lock().done(positions, Instant::now());
        let around = requests + self.waiting().requests;
        self.half.store(around / 2, Ordering::Release);
        self.at_device.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// Forms batches until `shutdown` is cancelled, then refuses the waiting requests. The channel `device` holds one batch
    /// beside the one that the device executes.
    pub async fn run(&self, device: mpsc::Sender<FormedBatch>, shutdown: CancellationToken) {
        let forming = async {
            while let Ok(place) = device.reserve().await {
                let formed = self.next().await;
                self.at_device.fetch_add(1, Ordering::AcqRel);
                place.send(formed);
            }
        };
        tokio::select! {
            () = forming => {}
            () = shutdown.cancelled() => {}
        }
        let left = {
            let mut queue = self.queue.lock();
            self.metrics.waiting(0);
            queue.drain()
        };
        for job in left {
            job.refuse(Refusal::Stopping);
        }
    }

    /// Waits for the next batch.
    async fn next(&self) -> FormedBatch {
        loop {
            self.read_arrived().await;
            match self.decide() {
                Next::Take(formed) => return formed,
                Next::WaitUntil(moment) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(moment) => {}
                        () = self.changed.notified() => {}
                    }
                }
                Next::Wait => self.changed.notified().await,
            }
        }
    }

    /// Yields to the runtime, so that it reads requests that have arrived at the sockets already. Without this the first of
    /// many simultaneous requests would get a batch of its own.
    async fn read_arrived(&self) {
        let half = self.half.load(Ordering::Acquire);
        let (most, most_barren) = if half > 1 {
            (MOST_YIELDS_FOR_HALF, MOST_YIELDS)
        } else {
            (MOST_YIELDS, 0)
        };
        let (mut before, mut barren) = (0, 0);
        for _ in 0..most {
            let now = self.waiting();
            let is_half = half > 1 && now.requests >= half;
            let is_idle = self.at_device.load(Ordering::Acquire) == 0;
            barren = if now.requests == before { barren + 1 } else { 0 };
            if !is_idle || is_half || now.positions >= self.policy.max_batch || barren > most_barren {
                return;
            }
            before = now.requests;
            tokio::task::yield_now().await;
        }
    }

    fn decide(&self) -> Next {
        let mut queue = self.queue.lock();
        let (waiting, policy) = (queue.waiting().positions, &self.policy);
        let is_idle = self.at_device.load(Ordering::Acquire) == 0;
        if waiting < policy.max_batch {
            if waiting == 0 || !is_idle {
                return Next::Wait;
            }
            let now = Instant::now();
            // The oldest request is looked up only if a wait is configured.
            let until = match policy.max_wait {
                Duration::ZERO => now,
                wait => queue.oldest().map_or(now, |oldest| oldest + wait),
            };
            if now < until {
                return Next::WaitUntil(until);
            }
        }
        let formed = queue.take(policy.max_batch, Instant::now());
        self.metrics.waiting(queue.waiting().positions);
        self.metrics.cancelled(queue.take_dropped().cancelled);
        formed.map_or(Next::Wait, Next::Take)
    }
}

/// Decision about the next batch.
enum Next {
    Take(FormedBatch),
    WaitUntil(Instant),
    Wait,
}

#[cfg(test)]
mod tests;
