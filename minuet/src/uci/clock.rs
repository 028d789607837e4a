//! Time budget of a move, and the time lost outside the engine.

use std::time::Duration;

use arena::players::searches::AnySearch;
use games::MoverValue;

use super::command::Limits;

/// Assumed number of remaining moves if there is no further time control.
const MOVES_AHEAD: f64 = 35.0;
/// Share of the increment that is added to a move's time.
const INCREMENT_SHARE: f64 = 0.8;
/// Largest factor by which a move that is hard to decide may exceed its soft limit.
const MOST_STRETCH: f64 = 3.0;
/// Largest share of the remaining time for such a move.
const MOST_SHARE: f64 = 0.3;
/// Time for a move when no time is left; one evaluation may fit.
const LEAST: Duration = Duration::from_millis(1);
/// Factor by which the expected loss decays per move.
const MEMORY: f64 = 0.9;
/// Largest plausible loss; a greater difference means that the clock was set by hand.
const BELIEVABLE: Duration = Duration::from_secs(5);
/// Time for a move whose only limit could not be read: the GUI waits for a move, and may never send `stop`.
const WITHOUT_LIMIT: Duration = Duration::from_secs(1);

/// Time limits of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Time at which the search should end. It may end earlier if the best move cannot change any more.
    pub soft: Duration,
    /// Time at which the search must end.
    pub hard: Duration,
    /// True if the search may end early; false if the GUI requested an exact time (`movetime`).
    pub may_save: bool,
}

impl Budget {
    /// True if a search that has taken the time `elapsed` should end.
    pub fn is_up(&self, elapsed: Duration, search: &dyn AnySearch) -> bool {
        if elapsed >= self.hard {
            return true;
        }
        if !self.may_save {
            return false;
        }
        let decision = search.decision();
        if decision.actions.len() == 1 {
            return true;
        }
        let mut visits = decision.visits.clone();
        visits.sort_unstable_by(|left, right| right.cmp(left));
        let lead = match visits[..] {
            [first, second, ..] => f64::from(first - second),
            _ => return true,
        };
        // If the most visited move does not have the best value, more visits may change the decision.
        if elapsed >= self.soft {
            return !is_doubtful(&decision.visits, &decision.values);
        }
        let rate = f64::from(search.visits_done()) / elapsed.as_secs_f64().max(1e-3);
        lead > rate * (self.soft - elapsed).as_secs_f64()
    }
}

/// True if a move with nearly as many visits has a better value than the most visited one.
fn is_doubtful(visits: &[u32], values: &[MoverValue]) -> bool {
    let Some(best) = (0..visits.len()).max_by_key(|&index| visits[index]) else {
        return false;
    };
    (0..visits.len()).any(|index| {
        2 * u64::from(visits[index]) > u64::from(visits[best])
            && values[index].get() > values[best].get() + 0.01
    })
}

/// Returns the budget for a move of the player `mover` (0 White, 1 Black) under `limits`; `None` without a time limit.
///
/// `overhead` is a reserve for time lost outside the engine (GUI, pipes, a busy machine); `lag` is the measured loss per
/// move of this game.
pub fn budget(limits: &Limits, mover: usize, overhead: Duration, lag: Duration) -> Option<Budget> {
    let overhead = overhead.max(2 * lag);
    if limits.infinite {
        return None;
    }
    let left = limits.time.get(mover).copied().flatten();
    let lacks_limit = limits.has_unread && left.is_none() && limits.depth.is_none() && limits.nodes.is_none();
    if let Some(time) = limits.move_time.or(lacks_limit.then_some(WITHOUT_LIMIT)) {
        let time = time.saturating_sub(overhead.min(time / 2)).max(LEAST);
        return Some(Budget {
            soft: time,
            hard: time,
            may_save: false,
        });
    }
    let left = left?;
    let increment = limits.increment.get(mover).copied().unwrap_or_default();
    // With little time left, only a part of the overhead can be reserved.
    let usable = left.saturating_sub(overhead).max(left / 16);
    let moves = limits
        .moves_to_go
        .map_or(MOVES_AHEAD, |moves| f64::from(moves.clamp(1, 50)));
    // The last move before a time control may use nearly all of the remaining time.
    let most = usable.mul_f64(MOST_SHARE.max(0.9 / moves));
    let share = (usable.div_f64(moves) + increment.mul_f64(INCREMENT_SHARE)).saturating_sub(lag);
    let soft = share.min(most);
    let hard = soft.mul_f64(MOST_STRETCH).min(most);
    Some(Budget {
        soft: soft.max(LEAST),
        hard: hard.max(LEAST),
        may_save: true,
    })
}

/// Estimate of the time lost outside the engine per move of the current game, from the clocks that the GUI sends.
///
/// Between two moves the engine's clock should fall by the time used, less the increment. Any further loss is due to pipes, the
/// GUI and a busy machine, and is likely to recur, so it is reserved for the next moves.
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
    use proptest::prelude::*;

    use super::*;

    const OVERHEAD: Duration = Duration::from_millis(100);
    const NONE: Duration = Duration::ZERO;

    fn clocks(left: u64, increment: u64) -> Limits {
        Limits {
            time: [Some(Duration::from_millis(left)); 2],
            increment: [Duration::from_millis(increment); 2],
            ..Limits::default()
        }
    }

    #[test]
    fn without_clocks_there_is_no_budget() {
        assert_eq!(budget(&Limits::default(), 0, OVERHEAD, NONE), None);
        let analysing = Limits {
            infinite: true,
            ..clocks(1000, 0)
        };
        assert_eq!(budget(&analysing, 0, OVERHEAD, NONE), None);
        let others_clock = Limits {
            time: [None, Some(Duration::from_secs(9))],
            ..Limits::default()
        };
        assert_eq!(budget(&others_clock, 0, OVERHEAD, NONE), None);
    }

    #[test]
    fn a_move_whose_only_limit_cannot_be_read_has_a_second() {
        let unread = Limits {
            has_unread: true,
            ..Limits::default()
        };
        let given = budget(&unread, 0, OVERHEAD, NONE).unwrap();
        assert_eq!(given.hard, Duration::from_millis(900));
        // White's clock cannot be read, Black's can.
        let one_clock = Limits {
            time: [None, Some(Duration::from_secs(60))],
            ..unread.clone()
        };
        assert_eq!(budget(&one_clock, 0, OVERHEAD, NONE), Some(given));
        assert_ne!(budget(&one_clock, 1, OVERHEAD, NONE), Some(given));
        for limited in [
            Limits {
                nodes: Some(9),
                ..unread.clone()
            },
            Limits {
                depth: Some(9),
                ..unread.clone()
            },
            Limits {
                infinite: true,
                ..unread
            },
        ] {
            assert_eq!(budget(&limited, 0, OVERHEAD, NONE), None);
        }
    }

    #[test]
    fn movetime_is_used_exactly() {
        let limits = Limits {
            move_time: Some(Duration::from_secs(1)),
            ..clocks(10, 0)
        };
        let given = budget(&limits, 1, OVERHEAD, NONE).unwrap();
        assert_eq!((given.soft, given.may_save), (Duration::from_millis(900), false));
    }

    #[test]
    fn the_last_move_before_a_time_control_gets_most_of_the_remaining_time() {
        let limits = Limits {
            moves_to_go: Some(1),
            ..clocks(10_000, 0)
        };
        let given = budget(&limits, 0, OVERHEAD, NONE).unwrap();
        assert!(given.soft > Duration::from_secs(8) && given.hard < Duration::from_secs(10));
    }

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

    proptest! {
        /// The clock never runs out, even if every move uses its hard limit and time below the increment is lost outside.
        #[test]
        fn the_clock_never_runs_out(
            start in 1_000u64..600_000,
            increment in prop_oneof![Just(0u64), 10u64..10_000],
            lost in 0u64..=100,
        ) {
            let lost = Duration::from_millis(lost.min(increment / 2));
            let mut left = Duration::from_millis(start);
            for _ in 0..120 {
                let given = budget(&clocks(left.as_millis() as u64, increment), 0, OVERHEAD, NONE).unwrap();
                prop_assert!(given.soft <= given.hard && given.hard < left, "{given:?} of {left:?}");
                let used = given.soft + lost;
                prop_assert!(used < left, "{used:?} of {left:?}");
                left = left - used + Duration::from_millis(increment);
            }
        }

        /// With a known lag, nearly the whole increment may be lost at each move.
        #[test]
        fn known_lag_is_reserved(start in 2_000u64..60_000, increment in 100u64..5_000, share in 0.0f64..0.9) {
            let lost = Duration::from_millis(increment).mul_f64(share).min(Duration::from_millis(start / 4));
            let mut left = Duration::from_millis(start);
            for number in 0..200 {
                let known = if number == 0 { NONE } else { lost };
                let given = budget(&clocks(left.as_millis() as u64, increment), 0, OVERHEAD, known).unwrap();
                let used = given.soft + lost;
                prop_assert!(used < left, "move {number}: {used:?} of {left:?}");
                left = left - used + Duration::from_millis(increment);
            }
        }

        #[test]
        fn an_empty_clock_still_gives_a_budget(left in 0u64..50, increment in 0u64..50, moves in prop::option::of(0u32..3)) {
            let limits = Limits { moves_to_go: moves, ..clocks(left, increment) };
            let given = budget(&limits, 0, OVERHEAD, NONE).unwrap();
            prop_assert!(given.soft >= LEAST && given.hard <= Duration::from_millis(left.max(1)));
        }
    }
}
