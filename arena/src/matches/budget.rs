//! Pauses of matches that run beside other work: [`Budget`].

use std::{
    thread,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

/// Longest sleep, after which the flag to stop is read again.
const PAUSE: Duration = Duration::from_millis(200);

/// Share of the machine's processor time that this process may take, counted from the start of the budget. Time that was not taken can
/// be taken later.
#[derive(Clone, Debug)]
pub struct Budget {
    began: Instant,
    used_before: f64,
    /// Processor seconds for each second.
    rate: f64,
}

impl Budget {
    /// Begins a budget of this share of all cores.
    pub fn of_cores(share: f64) -> Self {
        Self {
            began: Instant::now(),
            used_before: used(),
            rate: share * service::process::cores() as f64,
        }
    }

    /// Sleeps until the process has not taken more than its share, or until `stop` is set.
    pub(super) fn rest(&self, stop: &CancellationToken) {
        loop {
            let due = pause(used() - self.used_before, self.began.elapsed(), self.rate);
            if due.is_zero() || stop.is_cancelled() {
                return;
            }
            thread::sleep(due.min(PAUSE));
        }
    }
}

/// Returns the time until `used` processor seconds are at most `rate` times the elapsed time.
fn pause(used: f64, elapsed: Duration, rate: f64) -> Duration {
    Duration::try_from_secs_f64(used / rate)
        .unwrap_or_default()
        .saturating_sub(elapsed)
}

/// Returns the processor seconds of this process; 0 if the system does not tell.
fn used() -> f64 {
    service::process::usage(std::process::id()).map_or(0.0, |usage| usage.cpu_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_restores_the_share() {
        let seconds = Duration::from_secs;
        // 3 % of two cores are 0.06 seconds in a second.
        for (used, elapsed, rate, expected) in [
            (0.6, 4, 0.06, 6),
            (0.6, 10, 0.06, 0),
            (5.0, 100, 0.06, 0),
            (8.0, 4, 2.0, 0),
        ] {
            let found = pause(used, seconds(elapsed), rate);
            let differs = found.abs_diff(seconds(expected));
            assert!(
                differs < Duration::from_millis(1),
                "{used} in {elapsed} s: {found:?}"
            );
        }
    }

    #[test]
    fn a_stop_ends_a_pause() {
        let budget = Budget {
            used_before: -1e9,
            ..Budget::of_cores(0.01)
        };
        let stop = CancellationToken::new();
        stop.cancel();
        budget.rest(&stop);
    }
}
