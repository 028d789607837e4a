//! Decides when a batch is formed: continuous batching by back-pressure.
//!
//! The device has one thread or several, each of which computes a batch of its own. Requests gather while all of them work.
//! When one is free, it gets the requests that have gathered, without any timer. If several are free, each gets its part, and
//! a large request is split between them. If a batch of the largest size gathers earlier, it is formed at once and waits
//! for the device, so that the device never waits for it.
//!
//! A free thread gets what has arrived as soon as nothing more arrives. Clients that wait for each answer before they send
//! the next request would otherwise all be in one batch or in none, and the device and the sockets would work in turns. So
//! one of n threads gets a batch as soon as one of n + 1 shares of the recent requests is back: the others have a share each,
//! and the last share gathers meanwhile. Requests are counted whole for this.

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
        job::Job,
        queue::{self, FormedBatch, Queue, QueueLength},
    },
    intake::{
        refusal::Refusal,
        request::{ClientId, Priority},
    },
    metrics::Metrics,
};

/// Largest number of yields while more requests arrive.
const MOST_YIELDS: usize = 16;
/// Largest number of yields while less than a thread's share of the recent requests is back.
const MOST_YIELDS_FOR_SHARE: usize = 256;
/// Smallest number of positions that waiting requests are divided into for several free threads. A small batch costs a whole
/// call.
const LEAST_PART: usize = 16;

/// Weight of the newest batch in the running mean of the device's speed.
const NEWEST: f64 = 0.1;
/// Shortest retry hint: a client needs that long to send a request again.
const SHORTEST: Duration = Duration::from_millis(1);
/// Longest retry hint, and longest gap between batches that counts: older measurements say little.
const LONGEST: Duration = Duration::from_secs(5);
/// Positions per second that are assumed before the first batch.
const FIRST_GUESS: f64 = 1000.0;

/// Settings of the batcher.
#[derive(Clone, Debug)]
pub struct BatchingPolicy {
    /// Largest batch, in positions.
    pub max_batch: usize,
    /// Largest number of waiting positions.
    pub max_queue: usize,
}

/// Queue of requests, and the task that forms batches of them.
#[derive(Debug)]
pub struct Batcher {
    queue: Mutex<Queue>,
    /// Notified when a request is queued or a thread of the device becomes free.
    changed: Notify,
    /// Number of batches that the device has and has not finished.
    at_device: AtomicUsize,
    /// Number of requests in these batches.
    requests_at_device: AtomicUsize,
    /// Number of batches that the last batch's model computes at the same time.
    threads: AtomicUsize,
    /// A thread's share of the requests that waited, were computed or had just been answered when a batch was last finished.
    share: AtomicUsize,
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
            requests_at_device: AtomicUsize::new(0),
            threads: AtomicUsize::new(1),
            share: AtomicUsize::new(0),
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
            self.metrics.waiting.set(waiting as f64);
            (pushed, waiting)
        };
        match pushed {
            Ok(()) => {
                // While all threads work, only a batch of the largest size is formed, so the task need not wake. A batch that
                // finishes after this read wakes the task, which then sees this request.
                if waiting >= self.policy.max_batch || self.free_threads() > 0 {
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
        self.measure(&mut queue);
    }

    /// Brings the metrics of the queue up to date.
    fn measure(&self, queue: &mut Queue) {
        self.metrics.waiting.set(queue.waiting().positions as f64);
        self.metrics.cancelled.increment(queue.take_cancelled());
    }

    /// Records that the device has finished a batch of `positions` positions from `requests` requests.
    pub fn finished(&self, positions: usize, requests: usize) {
        self.speed.lock().done(positions, Instant::now());
        let at_device = self.requests_at_device.fetch_sub(requests, Ordering::AcqRel);
        let around = at_device + self.waiting().requests;
        let shares = 1 + self.threads.load(Ordering::Acquire);
        self.share.store(around / shares, Ordering::Release);
        self.at_device.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// Returns the number of threads of the device that have no batch.
    fn free_threads(&self) -> usize {
        let threads = self.threads.load(Ordering::Acquire);
        threads.saturating_sub(self.at_device.load(Ordering::Acquire))
    }

    /// Forms batches until `shutdown` is cancelled, then refuses the waiting requests. The channel `device` holds one batch
    /// in addition to those that the device executes.
    pub async fn run(&self, device: mpsc::Sender<FormedBatch>, shutdown: CancellationToken) {
        let forming = async {
            while let Ok(place) = device.reserve().await {
                let formed = self.next().await;
                self.threads
                    .store(formed.model.info.threads.max(1), Ordering::Release);
                let requests = formed.slices.len();
                self.requests_at_device.fetch_add(requests, Ordering::AcqRel);
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
            self.metrics.waiting.set(0.0);
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
            match self.form() {
                Some(formed) => return formed,
                None => self.changed.notified().await,
            }
        }
    }

    /// Yields to the runtime, so that it reads requests that have arrived at the sockets already. Without this the first of
    /// many simultaneous requests would get a batch of its own.
    async fn read_arrived(&self) {
        let share = self.share.load(Ordering::Acquire);
        let (most, most_barren) = if share > 1 {
            (MOST_YIELDS_FOR_SHARE, MOST_YIELDS)
        } else {
            (MOST_YIELDS, 0)
        };
        let (mut before, mut barren) = (0, 0);
        for _ in 0..most {
            let now = self.waiting();
            let is_share = share > 1 && now.requests >= share;
            let is_free = self.free_threads() > 0;
            barren = if now.requests == before { barren + 1 } else { 0 };
            if !is_free || is_share || now.positions >= self.policy.max_batch || barren > most_barren {
                return;
            }
            before = now.requests;
            tokio::task::yield_now().await;
        }
    }

    /// Forms a batch if a thread of the device is free, or if a batch of the largest size waits.
    fn form(&self) -> Option<FormedBatch> {
        let mut queue = self.queue.lock();
        let (waiting, most) = (queue.waiting().positions, self.policy.max_batch);
        let free = self.free_threads();
        if waiting == 0 || waiting < most && free == 0 {
            return None;
        }
        let part = waiting.div_ceil(free.max(1)).max(LEAST_PART);
        let formed = queue.take(most.min(part), Instant::now());
        self.measure(&mut queue);
        formed
    }
}

/// Speed of the device, from which a refused client gets its retry hint: the running mean of the time per position. Idle time between batches does not count.
#[derive(Clone, Copy, Debug, Default)]
struct DeviceSpeed {
    seconds_per_position: Option<f64>,
    last: Option<Instant>,
}

impl DeviceSpeed {
    /// Records that a batch of `positions` positions was finished at `now`.
    fn done(&mut self, positions: usize, now: Instant) {
        let since = self.last.replace(now).map(|last| (now - last).as_secs_f64());
        let Some(since) = since.filter(|&since| positions > 0 && since < LONGEST.as_secs_f64()) else {
            return;
        };
        let newest = since / positions as f64;
        let before = self.seconds_per_position.unwrap_or(newest);
        self.seconds_per_position = Some(before + NEWEST * (newest - before));
    }

    /// Returns the expected time for `positions` positions.
    fn time_for(&self, positions: usize) -> Duration {
        let each = self.seconds_per_position.unwrap_or(1.0 / FIRST_GUESS);
        Duration::from_secs_f64(
            (each * positions as f64).clamp(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64()),
        )
    }
}

#[cfg(test)]
mod tests;
