//! When a batch is taken: continuous batching by back-pressure.
//!
//! While the device works, requests gather; when it is free, it is given what has gathered, without any timer. If a whole
//! largest batch has gathered before, it is formed at once and waits beside the device, so that the device need not wait
//! for it. While the device is idle a lone request may be made to wait for company (`max_wait`; not at all by default).
//! The runtime's timers tick in milliseconds, so such a wait may end up to one millisecond late.

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
    job::Job,
    metrics::Metrics,
    models::Models,
    queue::{Formed, Queue},
    refusal::Refusal,
};

/// Requests come in here.
#[derive(Debug)]
pub struct Batcher {
    queue: Mutex<Queue>,
    /// Something was queued, or the device became idle.
    changed: Notify,
    /// Batches given to the device and not finished.
    at_device: AtomicUsize,
    models: Arc<Models>,
    max_wait: Duration,
    metrics: Arc<Metrics>,
}

impl Batcher {
    /// A batcher for at most `max_queue` waiting positions.
    pub fn new(
        models: Arc<Models>,
        max_queue: usize,
        max_wait: Duration,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue::new(max_queue)),
            changed: Notify::new(),
            at_device: AtomicUsize::new(0),
            models,
            max_wait,
            metrics,
        })
    }

    /// Queues a request.
    ///
    /// # Errors
    /// [`Refusal::QueueFull`].
    pub fn push(&self, job: Arc<Job>) -> Result<(), Refusal> {
        let waiting = {
            let mut queue = self.queue.lock();
            queue.push(job)?;
            queue.waiting()
        };
        self.metrics.waiting(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// The device has finished a batch.
    pub fn finished(&self) {
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
        for job in self.queue.lock().drain() {
            job.refuse(Refusal::Stopping);
        }
    }

    /// The next batch, as soon as it may be taken.
    async fn next(&self) -> Formed {
        loop {
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

    fn look(&self) -> Look {
        let Some(current) = self.models.current() else {
            return Look::Wait;
        };
        let mut queue = self.queue.lock();
        if queue.waiting() < current.buckets.largest() {
            if self.at_device.load(Ordering::Acquire) > 0 {
                return Look::Wait;
            }
            match queue.oldest() {
                None => return Look::Wait,
                Some(oldest) if Instant::now() < oldest + self.max_wait => {
                    return Look::WaitUntil(oldest + self.max_wait);
                }
                Some(_) => {}
            }
        }
        let formed = queue.take(&current);
        self.metrics.waiting(queue.waiting());
        self.metrics.cancelled(queue.take_dropped());
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
