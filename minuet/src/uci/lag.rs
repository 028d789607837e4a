//! Measures the time lost outside the engine, from the clocks that the GUI sends.
//!
//! Between two moves the engine's clock should fall by the time used, less the increment. Any further loss is due to pipes, the
//! GUI and a busy machine, and is likely to recur, so it is reserved for the next moves.

use std::time::Duration;

use super::command::Limits;

/// Factor by which the expected loss decays per move.
const MEMORY: f64 = 0.9;
/// Largest plausible loss; a greater difference means that the clock was set by hand.
const BELIEVABLE: Duration = Duration::from_secs(5);

/// Estimate of the loss per move in the current game.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    /// The player, and the expected time on its clock at its next move.
    expected: Option<(usize, Duration)>,
    /// Expected loss per move.
    reserve: Duration,
}

impl Lag {
    /// Updates the estimate from the clocks in `limits` at the start of a move by `mover`, and returns the expected loss.
    pub fn asked(&mut self, limits: &Limits, mover: usize) -> Duration {
        let left = limits.time.get(mover).copied().flatten();
        if let (Some((player, expected)), Some(left)) = (self.expected.take(), left)
            && player == mover
        {
            // A clock with more time than expected has passed a time control.
            let lost = expected.saturating_sub(left);
            if lost < BELIEVABLE {
                self.reserve = self.reserve.mul_f64(MEMORY).max(lost);
            }
        }
        self.reserve
    }

    /// Records that the move took the time `used`.
    pub fn answered(&mut self, limits: &Limits, mover: usize, used: Duration) {
        let left = limits.time.get(mover).copied().flatten();
        let increment = limits.increment.get(mover).copied().unwrap_or_default();
        self.expected = left.map(|left| (mover, (left + increment).saturating_sub(used)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn clock(left: u32) -> Limits {
        Limits {
            time: [Some(left * MS), None],
            increment: [50 * MS, Duration::ZERO],
            ..Limits::default()
        }
    }

    #[test]
    fn a_loss_is_expected_again() {
        let mut lag = Lag::default();
        assert_eq!(lag.asked(&clock(1000), 0), Duration::ZERO);
        lag.answered(&clock(1000), 0, 70 * MS);
        // 980 were expected.
        assert_eq!(lag.asked(&clock(900), 0), 80 * MS);
        lag.answered(&clock(900), 0, 10 * MS);
        assert_eq!(lag.asked(&clock(940), 0), 72 * MS);
    }

    #[test]
    fn other_clocks_do_not_change_the_estimate() {
        let mut lag = Lag::default();
        lag.answered(&clock(1000), 0, 70 * MS);
        assert_eq!(lag.asked(&Limits::default(), 1), Duration::ZERO);
        lag.answered(&clock(60_000), 0, MS);
        assert_eq!(lag.asked(&clock(1000), 0), Duration::ZERO, "set by hand");
        lag.answered(&clock(1000), 0, MS);
        assert_eq!(
            lag.asked(&clock(600_000), 0),
            Duration::ZERO,
            "a time control passed"
        );
    }
}
