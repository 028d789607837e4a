//! When a batch is taken: continuous batching by back-pressure.
//!
//! While the device works, requests gather; when it is free, it is given what has gathered, without any timer. If a whole
//! largest batch has gathered before, it is formed at once and waits beside the device, so that the device need not wait
//! for it.
//!
//! An idle device is given what has arrived, once nothing more arrives. Clients that wait for an answer before they ask again
//! would all be in one batch or in none, and the device would work in turns with their sockets; so it is given half of
//! those that were there lately as soon as they are back, and the other half gathers meanwhile. Whole requests are
//! counted for this, never cut.
//!
//! While the device is idle a lone request may be made to wait for company (`max_wait`; not at all by default), unless what
//! waits makes up a preferred size. The runtime's timers tick in milliseconds, so such a wait may end up to one millisecond late.

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
        pace::Pace,
        queue::{self, Formed, Queue, Waiting},
    },
    metrics::Metrics,
    requests::{
        refusal::Refusal,
        request::{ClientId, Priority},
    },
};

/// How often more is let in, as long as more comes.
const MOST_YIELDS: usize = 16;
/// How often at most while half of the clients are not back yet.
const MOST_YIELDS_FOR_HALF: usize = 256;

/// When batches are taken, and how much may wait.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Largest batch, in positions.
    pub max_batch: usize,
    /// Sizes, ascending, at which a batch is cut where less than a largest one waits. Empty: what there is.
    pub preferred: Vec<usize>,
    /// Longest time a request waits for company while the device is idle.
    pub max_wait: Duration,
    /// Positions that may wait.
    pub max_queue: usize,
}

/// Requests come in here.
#[derive(Debug)]
pub struct Batcher {
    queue: Mutex<Queue>,
    /// Something was queued, or the device became idle.
    changed: Notify,
    /// Batches given to the device and not finished.
    at_device: AtomicUsize,
    /// Half of the requests that waited or were just answered when the device last became idle.
    half: AtomicUsize,
    /// How fast the device is, to say when to try again.
    pace: Mutex<Pace>,
    policy: Policy,
    metrics: Arc<Metrics>,
}

impl Batcher {
    /// A batcher.
    pub fn new(policy: Policy, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue::new(policy.max_queue)),
            changed: Notify::new(),
            at_device: AtomicUsize::new(0),
            half: AtomicUsize::new(0),
            pace: Mutex::new(Pace::default()),
            policy,
            metrics,
        })
    }

    /// Queues a request.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`], saying when it is worth trying again.
    pub fn push(&self, job: Arc<Job>) -> Result<(), Refusal> {
        let (pushed, waiting) = {
            let mut queue = self.queue.lock();
            let (pushed, waiting) = (queue.push(job), queue.waiting().positions);
            // Under the lock: what is said last is what is so last.
            self.metrics.waiting(waiting);
            (pushed, waiting)
        };
        match pushed {
            Ok(()) => {
                // While the device works nothing is formed of less than a largest batch, so nobody need look. A batch that
                // is finished after this was read wakes the task too, and what was queued before is seen then.
                if waiting >= self.policy.max_batch || self.at_device.load(Ordering::Acquire) == 0 {
                    self.changed.notify_one();
                }
                Ok(())
            }
            Err(Refusal::QueueFull { waiting, most, .. }) => Err(Refusal::QueueFull {
                waiting,
                most,
                retry_after_ms: self.pace.lock().time_for(waiting).as_millis() as u64,
            }),
            other => other,
        }
    }

    /// How much waits.
    pub fn waiting(&self) -> Waiting {
        self.queue.lock().waiting()
    }

    /// Positions that a request of this priority may hold: what is larger never fits.
    pub fn most_of(&self, priority: Priority) -> usize {
        queue::limit_of(priority, self.policy.max_queue)
    }

    /// A client has given up on something: what it does not wait for any more makes room.
    pub fn sweep(&self, client: ClientId) {
        let mut queue = self.queue.lock();
        queue.sweep(client, Instant::now());
        self.metrics.waiting(queue.waiting().positions);
        self.metrics.dropped(queue.take_dropped());
    }

    /// The device has finished a batch of so many positions, of so many requests.
    pub fn finished(&self, positions: usize, requests: usize) {
        self.pace.lock().done(positions, Instant::now());
        let around = requests + self.waiting().requests;
        self.half.store(around / 2, Ordering::Release);
        self.at_device.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// Forms batches for `device`, whose channel holds one batch beside the one that is executed, until `stop`.
    /// What waits then is refused.
    pub async fn run(&self, device: mpsc::Sender<Formed>, stop: CancellationToken) {
        let forming = async {
            while let Ok(place) = device.reserve().await {
                let formed = self.next().await;
                self.at_device.fetch_add(1, Ordering::AcqRel);
                place.send(formed);
            }
        };
        tokio::select! {
            () = forming => {}
            () = stop.cancelled() => {}
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

    /// The next batch, as soon as it may be taken.
    async fn next(&self) -> Formed {
        loop {
            self.let_in().await;
            match self.look() {
                Look::Take(formed) => return formed,
                Look::WaitUntil(moment) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(moment) => {}
                        () = self.changed.notified() => {}
                    }
                }
                Look::Wait => self.changed.notified().await,
            }
        }
    }

    /// Lets in what has arrived already but was not read: each time this task yields, the runtime reads what sockets hold.
    /// Otherwise the first of many clients that ask at the same time would have a batch of its own.
    async fn let_in(&self) {
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

    fn look(&self) -> Look {
        let mut queue = self.queue.lock();
        let (waiting, policy) = (queue.waiting().positions, &self.policy);
        let is_idle = self.at_device.load(Ordering::Acquire) == 0;
        let most = if waiting >= policy.max_batch {
            policy.max_batch
        } else if waiting == 0 || !is_idle {
            return Look::Wait;
        } else if let Some(&size) = policy.preferred.iter().rfind(|&&size| size <= waiting) {
            size
        } else {
            let now = Instant::now();
            // The oldest is looked for only where it matters.
            let until = match policy.max_wait {
                Duration::ZERO => now,
                wait => queue.oldest().map_or(now, |oldest| oldest + wait),
            };
            if now < until {
                return Look::WaitUntil(until);
            }
            policy.max_batch
        };
        let formed = queue.take(most, Instant::now());
        self.metrics.waiting(queue.waiting().positions);
        self.metrics.dropped(queue.take_dropped());
        formed.map_or(Look::Wait, Look::Take)
    }
}

enum Look {
    Take(Formed),
    WaitUntil(Instant),
    Wait,
}

#[cfg(test)]
mod tests;
