//! How fast the device is, so that who is refused can be told when to come again.

use std::time::Duration;

use tokio::time::Instant;

/// Weight of the newest batch.
const NEWEST: f64 = 0.1;
/// A hint is never shorter: a client needs that long to ask again.
const SHORTEST: Duration = Duration::from_millis(1);
/// Nor longer: what is known about the device is old by then.
const LONGEST: Duration = Duration::from_secs(5);
/// Positions a second, before anything is known.
const FIRST_GUESS: f64 = 1000.0;

/// A running mean of the time that a position takes. Idle times between batches do not count as slowness.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    seconds_per_position: Option<f64>,
    last: Option<Instant>,
}

impl Pace {
    /// A batch of `positions` is done at `now`.
    pub fn done(&mut self, positions: usize, now: Instant) {
        let since = self.last.replace(now).map(|last| (now - last).as_secs_f64());
        let Some(since) = since.filter(|&since| positions > 0 && since < LONGEST.as_secs_f64()) else {
            return;
        };
        let newest = since / positions as f64;
        let before = self.seconds_per_position.unwrap_or(newest);
        self.seconds_per_position = Some(before + NEWEST * (newest - before));
    }

    /// How long so many positions take.
    pub fn time_for(&self, positions: usize) -> Duration {
        let each = self.seconds_per_position.unwrap_or(1.0 / FIRST_GUESS);
        Duration::from_secs_f64(
            (each * positions as f64).clamp(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_long_what_waits_will_take() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.time_for(1000), Duration::from_secs(1));
        for batch in 0..100 {
            pace.done(64, start + Duration::from_millis(10) * batch);
        }
        let time = pace.time_for(6400).as_secs_f64();
        assert!((time - 1.0).abs() < 1e-6, "{time}");
        assert_eq!(pace.time_for(0), SHORTEST);
        assert_eq!(pace.time_for(usize::MAX), LONGEST);
        // An hour without requests says nothing about the device.
        pace.done(64, start + Duration::from_secs(3600));
        assert!((pace.time_for(6400).as_secs_f64() - 1.0).abs() < 1e-6);
    }
}
