//! How long to think about a move.

use std::time::Duration;

use super::command::Limits;

/// Moves that a game without a time control ahead is believed to go on for.
const MOVES_AHEAD: f64 = 35.0;
/// Share of the increment that a move may take for itself.
const INCREMENT_SHARE: f64 = 0.8;
/// A move that is hard to decide may take this many times what it was given…
const MOST_STRETCH: f64 = 3.0;
/// … and at most this share of what is left.
const MOST_SHARE: f64 = 0.3;
/// Time for a move when none is left to give: one evaluation may fit.
const LEAST: Duration = Duration::from_millis(1);

/// What a move may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Where the search should end. It may end earlier when nothing can change any more.
    pub soft: Duration,
    /// Where it must.
    pub hard: Duration,
    /// Whether less may be used: not where the GUI asked for exactly so long.
    pub may_save: bool,
}

/// The budget for a move by the player `mover` (0 White, 1 Black) under `limits`; `None` where time does not matter.
///
/// `overhead` is kept for what passes outside the engine: the GUI, pipes, a busy machine; `lag` is what each move of this
/// game has been seen to lose there.
pub fn budget(limits: &Limits, mover: usize, overhead: Duration, lag: Duration) -> Option<Budget> {
    let overhead = overhead.max(2 * lag);
    if limits.infinite {
        return None;
    }
    if let Some(time) = limits.move_time {
        let time = time.saturating_sub(overhead.min(time / 2)).max(LEAST);
        return Some(Budget {
            soft: time,
            hard: time,
            may_save: false,
        });
    }
    let left = limits.time.get(mover).copied().flatten()?;
    let increment = limits.increment.get(mover).copied().unwrap_or_default();
    // Near the end of the time the overhead cannot be had whole.
    let usable = left.saturating_sub(overhead).max(left / 16);
    let moves = limits
        .moves_to_go
        .map_or(MOVES_AHEAD, |moves| f64::from(moves.clamp(1, 50)));
    // The last move before a time control may have nearly all that is left.
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
    fn a_time_for_the_move_is_kept_to() {
        let limits = Limits {
            move_time: Some(Duration::from_secs(1)),
            ..clocks(10, 0)
        };
        let given = budget(&limits, 1, OVERHEAD, NONE).unwrap();
        assert_eq!((given.soft, given.may_save), (Duration::from_millis(900), false));
    }

    #[test]
    fn the_last_move_before_a_time_control_has_most_of_what_is_left() {
        let limits = Limits {
            moves_to_go: Some(1),
            ..clocks(10_000, 0)
        };
        let given = budget(&limits, 0, OVERHEAD, NONE).unwrap();
        assert!(given.soft > Duration::from_secs(8) && given.hard < Duration::from_secs(10));
    }

    proptest! {
        /// With all of every budget used, and time lost outside on top (less than the increment), no flag falls.
        #[test]
        fn no_flag_falls(
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

        /// With all that a move loses known, nearly the whole increment may be lost at each.
        #[test]
        fn known_lag_is_kept_back(start in 2_000u64..60_000, increment in 100u64..5_000, share in 0.0f64..0.9) {
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
