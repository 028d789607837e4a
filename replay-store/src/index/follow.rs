//! The thread that keeps the index up to date with the log.

use std::{
    io,
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::Index;
use crate::log::volumes::Volumes;

/// Maximum time between two checks of the log.
const LOOK: Duration = Duration::from_secs(1);

/// Pause after a failure, so that a full disk is not written to again and again.
const PAUSE: Duration = Duration::from_secs(10);

/// Time between two flushes of the index to the disk. It limits the part of the log that is read again after a loss of power.
const FLUSH: Duration = Duration::from_secs(30);

/// Handle of the running thread.
#[derive(Debug)]
pub struct Following {
    index: Arc<Index>,
    thread: JoinHandle<()>,
}

impl Following {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn start(index: Arc<Index>, volumes: Arc<Volumes>) -> io::Result<Self> {
        index.state.lock().has_news = true;
        let thread = thread::Builder::new().name("replay-indexer".into()).spawn({
            let index = Arc::clone(&index);
            move || run(&index, &volumes)
        })?;
        Ok(Self { index, thread })
    }

    /// Waits until the index is up to date with the log, flushes it, and ends the thread.
    pub fn end(self) {
        self.index.is_closing.store(true, Ordering::SeqCst);
        self.index.notify();
        // The panic hook has logged a panic. The next opening completes the index.
        let _ = self.thread.join();
        self.index.volumes.write().clear();
    }
}

fn run(index: &Index, volumes: &Volumes) {
    let mut flushed = Instant::now();
    loop {
        {
            let mut state = index.state.lock();
            if !state.has_news {
                index.wake.wait_for(&mut state, LOOK);
            }
            state.has_news = false;
        }
        let is_closing = index.is_closing.load(Ordering::SeqCst);
        let is_due = is_closing || flushed.elapsed() > FLUSH;
        let is_up = pass(index, volumes, is_due);
        if is_due {
            flushed = Instant::now();
        }
        if is_closing {
            return;
        }
        if !is_up {
            let mut state = index.state.lock();
            let deadline = Instant::now() + PAUSE;
            while !index.is_closing.load(Ordering::SeqCst) {
                if index.wake.wait_until(&mut state, deadline).timed_out() {
                    break;
                }
            }
            state.has_news = true;
        }
    }
}

/// Brings the index of every volume up to date, and writes it to the disk if `is_due`. Returns false if an index could not be written.
fn pass(index: &Index, volumes: &Volumes, is_due: bool) -> bool {
    let all = volumes.all();
    remove_retired(index, all.first().map_or(0, |volume| volume.first()));
    let mut is_up = true;
    let mut reached = 0;
    for (at, volume) in all.iter().enumerate() {
        let next = volume.next();
        let own = {
            let mut indexes = index.volumes.write();
            let own = indexes
                .entry(volume.first())
                .or_insert_with(|| Arc::new(index.closed(volume.first())));
            Arc::clone(own)
        };
        let is_sealed = at + 1 < all.len();
        if let Err(error) = own.follow(volume, is_sealed, is_due) {
            tracing::warn!(volume = volume.first(), %error, "the index of a volume cannot be written and is rebuilt");
            own.discard();
            index.reached.fetch_min(volume.first(), Ordering::SeqCst);
            index.rebuilt.fetch_add(1, Ordering::SeqCst);
            is_up = false;
        }
        reached = next;
    }
    if is_up {
        let _state = index.state.lock();
        index.reached.store(reached, Ordering::SeqCst);
        index.caught_up.notify_all();
    }
    is_up
}

/// Removes the indexes of volumes that no longer exist.
fn remove_retired(index: &Index, oldest: u64) {
    let retired: Vec<_> = {
        let mut volumes = index.volumes.write();
        let kept = volumes.split_off(&oldest);
        std::mem::replace(&mut *volumes, kept).into_values().collect()
    };
    for volume in retired {
        volume.discard();
    }
}
