//! Bounds the processor time that the check of games by their rules takes.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// Share of the processor time of the process. Draws take about as much as appends, so that appends become at most a tenth slower.
const SHARE: f64 = 0.05;
/// Processor time that may be taken in any case.
const FIRST: Duration = Duration::from_millis(200);

/// Allows work as long as it has taken at most a twentieth of the processor time of the process, or 200 ms.
///
/// A check of games by their rules stays within it in a run, and does not while many games of a slow game are appended without a pause.
#[derive(Debug, Default)]
pub struct Allowance {
    used_ns: AtomicU64,
}

impl Allowance {
    /// Returns the result of `work`, whose processor time counts, or `None` if the time is used up.
    pub fn spend<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let total = time(ClockId::ProcessCPUTime);
        if !is_within(Duration::from_nanos(self.used_ns.load(Ordering::Relaxed)), total) {
            return None;
        }
        let before = time(ClockId::ThreadCPUTime);
        let result = work();
        let took = time(ClockId::ThreadCPUTime).saturating_sub(before);
        self.used_ns.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        Some(result)
    }
}

/// True if work that has taken `used` of the `total` time may go further.
fn is_within(used: Duration, total: Duration) -> bool {
    used <= FIRST.max(total.mul_f64(SHARE))
}

fn time(clock: ClockId) -> Duration {
    // The times of a process and of a thread are positive.
    clock_gettime(clock).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_and_at_least_the_first_time() {
        let millis = Duration::from_millis;
        for (used, total, expected) in [
            (200, 300, true),
            (201, 3_999, false),
            (500, 10_000, true),
            (501, 10_000, false),
        ] {
            assert_eq!(
                is_within(millis(used), millis(total)),
                expected,
                "{used} of {total}"
            );
        }
    }

    #[test]
    fn work_counts_and_ends_with_the_allowance() {
        let allowance = Allowance::default();
        assert_eq!(allowance.spend(|| 7), Some(7));
        let busy = || {
            let began = time(ClockId::ThreadCPUTime);
            while time(ClockId::ThreadCPUTime) - began < Duration::from_millis(2) {}
        };
        allowance.spend(busy).unwrap();
        assert!(allowance.used_ns.load(Ordering::Relaxed) >= 2_000_000);
        allowance.used_ns.store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(allowance.spend(|| 7), None);
    }
}
