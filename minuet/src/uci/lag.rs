//! How much time is lost outside the engine, read off the clocks that the GUI sends.
//!
//! Between two of the engine's moves its clock should fall by what the engine took, less the increment. What it falls
//! by more has gone to pipes, the GUI and a busy machine, and will go again: it is kept back from the next moves.

use std::time::Duration;

use super::command::Limits;

/// How much of what was lost once is still expected to be lost one move later.
const MEMORY: f64 = 0.9;
/// A clock that differs by more was set by hand.
const BELIEVABLE: Duration = Duration::from_secs(5);

/// What was seen of the clocks in this game.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    /// The player, and what its clock should say when it is asked next.
    expected: Option<(usize, Duration)>,
    /// What a move is expected to lose.
    reserve: Duration,
}

impl Lag {
    /// The player `mover` is asked for a move under `limits`: what that move is expected to lose.
    pub fn asked(&mut self, limits: &Limits, mover: usize) -> Duration {
        let left = limits.time.get(mover).copied().flatten();
        if let (Some((player, expected)), Some(left)) = (self.expected.take(), left)
            && player == mover
        {
            // A clock that says more has passed a time control.
            let lost = expected.saturating_sub(left);
            if lost < BELIEVABLE {
                self.reserve = self.reserve.mul_f64(MEMORY).max(lost);
            }
        }
        self.reserve
    }

    /// The move was given after `used`.
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
    fn what_the_clock_lost_is_expected_again() {
        let mut lag = Lag::default();
        assert_eq!(lag.asked(&clock(1000), 0), Duration::ZERO);
        lag.answered(&clock(1000), 0, 70 * MS);
        // 980 were expected.
        assert_eq!(lag.asked(&clock(900), 0), 80 * MS);
        lag.answered(&clock(900), 0, 10 * MS);
        assert_eq!(lag.asked(&clock(940), 0), 72 * MS);
    }

    #[test]
    fn other_clocks_say_nothing() {
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
