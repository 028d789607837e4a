//! Keeps what would be said again and again to a line now and then, whoever says it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// One subject, which several threads may have something to say about.
#[derive(Debug)]
pub(crate) struct LogThrottle {
    began: Instant,
    pause_ms: u64,
    /// Milliseconds since `began` before which nothing more is said; 0: nothing was said yet.
    quiet_until_ms: AtomicU64,
}

impl LogThrottle {
    /// At most one line in each `pause`.
    pub(crate) fn new(pause: Duration) -> Self {
        Self {
            began: Instant::now(),
            pause_ms: pause.as_millis() as u64,
            quiet_until_ms: AtomicU64::new(0),
        }
    }

    /// Whether it may be said now; then it is quiet for a while.
    pub(crate) fn allows(&self) -> bool {
        let now = self.began.elapsed().as_millis() as u64;
        let until = self.quiet_until_ms.load(Ordering::Relaxed);
        until <= now
            && self
                .quiet_until_ms
                .compare_exchange(until, now + self.pause_ms, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The matter is settled: whether anything was said about it. The next time is a first one again.
    pub(crate) fn settle(&self) -> bool {
        self.quiet_until_ms.load(Ordering::Relaxed) != 0
            && self.quiet_until_ms.swap(0, Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_speaks_and_is_told_apart_from_silence() {
        let hush = LogThrottle::new(Duration::from_secs(3600));
        assert!(!hush.settle());
        assert!(hush.allows());
        assert!(!hush.allows());
        assert!(hush.settle());
        assert!(!hush.settle());
        assert!(hush.allows());
        let talkative = LogThrottle::new(Duration::ZERO);
        assert!(talkative.allows() && talkative.allows());
    }
}
