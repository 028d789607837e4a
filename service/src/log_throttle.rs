//! Limits how often a repeated condition is logged: [`LogThrottle`].

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Limits the log lines about one condition, which several threads may notice.
#[derive(Debug)]
pub struct LogThrottle {
    began: Instant,
    interval_ms: u64,
    /// Milliseconds since `began` before which no other line is allowed. 0: no line was allowed since the last reset.
    quiet_until_ms: AtomicU64,
}

impl Default for LogThrottle {
    /// Allows one line a minute.
    fn default() -> Self {
        Self::new(Duration::from_secs(60))
    }
}

impl LogThrottle {
    /// Allows one line in each `interval`.
    pub fn new(interval: Duration) -> Self {
        Self {
            began: Instant::now(),
            interval_ms: interval.as_millis() as u64,
            quiet_until_ms: AtomicU64::new(0),
        }
    }

    /// True if the caller may log a line now. The next line is allowed after the interval.
    pub fn allows(&self) -> bool {
        let now = self.began.elapsed().as_millis() as u64;
        let until = self.quiet_until_ms.load(Ordering::Relaxed);
        until <= now
            && self
                .quiet_until_ms
                .compare_exchange(
                    until,
                    now + self.interval_ms,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// Notes that the condition is over, so that its next occurrence is logged at once. True if a line was allowed before.
    pub fn reset(&self) -> bool {
        self.quiet_until_ms.load(Ordering::Relaxed) != 0
            && self.quiet_until_ms.swap(0, Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_allowed_in_each_interval_and_after_a_reset() {
        let throttle = LogThrottle::new(Duration::from_secs(3600));
        assert!(!throttle.reset());
        assert!(throttle.allows());
        assert!(!throttle.allows());
        assert!(throttle.reset());
        assert!(!throttle.reset());
        assert!(throttle.allows());
        let unlimited = LogThrottle::new(Duration::ZERO);
        assert!(unlimited.allows() && unlimited.allows());
    }
}
