//! The highest rate of requests that the server keeps up with, found with an open load: [`peak`].

use super::load::{Load, Window};

/// Ratio of one offered rate to the rate before.
const STEP: f64 = 1.1;
/// Largest share of the offered positions that may be left unanswered.
const BACKLOG: f64 = 0.02;
/// Smallest share of the rate that the clients must reach.
const OFFERED: f64 = 0.95;
/// Tries at a rate, because other work on the machine may disturb one.
const TRIES: usize = 2;
/// Largest number of different rates.
const MOST: usize = 60;

/// Returns the highest rate, in positions per second, at which `offer` keeps up. The search begins at half of `guess` and
/// raises the rate by a tenth each time.
///
/// # Errors
/// An error of `offer`, or the server keeps up with no rate.
pub fn peak(
    load: Load,
    guess: f64,
    mut offer: impl FnMut(f64) -> anyhow::Result<Window>,
) -> anyhow::Result<f64> {
    let (mut rate, mut kept) = (guess / 2.0, None);
    for _ in 0..MOST {
        let mut keeps_up = false;
        for _ in 0..TRIES {
            keeps_up = keeps_up || is_answered(load, rate, &offer(rate)?);
        }
        match (keeps_up, kept) {
            (true, _) => kept = Some(rate),
            (false, Some(kept)) => return Ok(kept),
            (false, None) => rate /= STEP * STEP,
        }
        if kept.is_some() {
            rate *= STEP;
        }
    }
    kept.ok_or_else(|| anyhow::anyhow!("the server keeps up with no rate, not even {rate:.0} positions/s"))
}

/// True if the clients offered `rate`, nothing was refused, and the unanswered requests did not pile up.
fn is_answered(load: Load, rate: f64, window: &Window) -> bool {
    // One request of each stream may be on its way.
    let allowed = (BACKLOG * window.offered as f64).max((load.streams * load.rows) as f64);
    let unanswered = window.offered as f64 - window.answered.positions as f64;
    window.refused == 0 && unanswered <= allowed && window.offered_per_second() >= OFFERED * rate
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::harness::measure::Measured;

    /// Returns the figures of one second of a server that answers at most `capacity` positions and refuses the `refuses`
    /// share of the others.
    fn window(rate: f64, capacity: f64, refuses: f64) -> Window {
        let answered = rate.min(capacity);
        Window {
            answered: Measured {
                positions: answered as u64,
                time: Duration::from_secs(1),
                cpu_seconds: 1.0,
                device_seconds: 0.0,
                busy_seconds: 0.0,
            },
            offered: rate as u64,
            refused: ((rate - answered) * refuses) as u64,
            latencies: Vec::new(),
        }
    }

    const LOAD: Load = Load { streams: 4, rows: 1 };

    #[test]
    fn the_peak_lies_within_a_step_of_the_capacity() {
        for guess in [20.0, 900.0, 5_000.0] {
            for refuses in [0.0, 1.0] {
                let found = peak(LOAD, guess, |rate| Ok(window(rate, 1000.0, refuses))).unwrap();
                assert!((900.0..=1025.0).contains(&found), "{guess} {refuses}: {found}");
            }
        }
    }

    #[test]
    fn one_disturbed_measurement_does_not_end_the_search() {
        let mut number = 0;
        let found = peak(LOAD, 100.0, |rate| {
            number += 1;
            Ok(window(rate, if number % 2 == 0 { 1.0 } else { 1000.0 }, 1.0))
        });
        assert!(found.unwrap() > 900.0);
    }

    #[test]
    fn a_server_that_refuses_everything_has_no_peak() {
        let error = peak(LOAD, 100.0, |rate| Ok(window(rate, 0.0, 1.0))).unwrap_err();
        assert!(error.to_string().contains("keeps up with no rate"), "{error}");
    }
}
