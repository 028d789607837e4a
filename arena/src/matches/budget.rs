//! Pauses of matches, so that most processor time is left to other processes: [`Budget`].

use std::{
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Longest sleep, after which the flag to stop is read again.
const PAUSE: Duration = Duration::from_millis(200);
/// Largest number of processor seconds that can be saved for later.
const MOST_SAVED: f64 = 3.0;

/// Share of the machine's processor time that this process may take. Little of the time that was not taken can be taken later.
#[derive(Debug)]
pub struct Budget {
    /// Processor seconds for each second.
    rate: f64,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    at: Instant,
    /// Processor seconds that the process had taken at that time.
    used: f64,
    /// Processor seconds that may be taken; below 0, those that were taken too early.
    saved: f64,
}

impl Budget {
    /// Begins a budget of this share of all cores.
    pub fn of_cores(share: f64) -> Self {
        let state = State {
            at: Instant::now(),
            used: used(),
            saved: 0.0,
        };
        Self {
            rate: share * service::process::cores() as f64,
            state: Mutex::new(state),
        }
    }

    /// Sleeps until the process has not taken more than its share, or until `stop` is set.
    pub(super) fn rest(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let saved = {
                let mut state = self.state.lock();
                *state = state.after(Instant::now(), used(), self.rate);
                state.saved
            };
            if saved >= 0.0 {
                return;
            }
            thread::sleep(Duration::from_secs_f64(-saved / self.rate).min(PAUSE));
        }
    }
}

impl State {
    /// Returns the state at a later time.
    fn after(self, now: Instant, used: f64, rate: f64) -> Self {
        let gained = rate * now.saturating_duration_since(self.at).as_secs_f64();
        Self {
            at: now,
            used,
            saved: (self.saved + gained - (used - self.used)).min(MOST_SAVED),
        }
    }
}

/// Returns the processor seconds of this process; 0 if the system does not tell.
fn used() -> f64 {
    service::process::usage(std::process::id()).map_or(0.0, |usage| usage.cpu_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn early_use_is_paid_for_and_little_is_saved() {
        let at = Instant::now();
        let begin = State {
            at,
            used: 7.0,
            saved: 0.0,
        };
        // 3 % of two cores are 0.06 seconds in a second.
        for (seconds, used, expected) in [
            (10, 7.6, 0.0),
            (4, 7.6, -0.36),
            (20, 7.6, 0.6),
            (100_000, 7.0, MOST_SAVED),
        ] {
            let later = begin.after(at + Duration::from_secs(seconds), used, 0.06);
            assert!((later.saved - expected).abs() < 1e-9, "{later:?}");
            assert_eq!(later.used, used);
        }
    }

    #[test]
    fn a_stop_ends_a_pause() {
        let budget = Budget::of_cores(0.01);
        budget.state.lock().saved = -1e9;
        let stop = CancellationToken::new();
        stop.cancel();
        budget.rest(&stop);
    }
}
