//! Speed of the device, from which a refused client gets its retry hint.

use std::time::Duration;

use tokio::time::Instant;

/// Weight of the newest batch in the running mean.
const NEWEST: f64 = 0.1;
/// Shortest retry hint: a client needs that long to send a request again.
const SHORTEST: Duration = Duration::from_millis(1);
/// Longest retry hint, and longest gap between batches that counts: older measurements say little.
const LONGEST: Duration = Duration::from_secs(5);
/// Positions per second that are assumed before the first batch.
const FIRST_GUESS: f64 = 1000.0;

/// Running mean of the time per position. Idle time between batches does not count.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceSpeed {
    seconds_per_position: Option<f64>,
    last: Option<Instant>,
}

impl DeviceSpeed {
    /// Records that a batch of `positions` positions was finished at `now`.
    pub fn done(&mut self, positions: usize, now: Instant) {
        let since = self.last.replace(now).map(|last| (now - last).as_secs_f64());
        let Some(since) = since.filter(|&since| positions > 0 && since < LONGEST.as_secs_f64()) else {
            return;
        };
        let newest = since / positions as f64;
        let before = self.seconds_per_position.unwrap_or(newest);
        self.seconds_per_position = Some(before + NEWEST * (newest - before));
    }

    /// Returns the expected time for `positions` positions.
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
    fn expected_time_follows_the_measured_speed_and_ignores_idle_time() {
        let (mut speed, start) = (DeviceSpeed::default(), Instant::now());
        assert_eq!(speed.time_for(1000), Duration::from_secs(1));
        for batch in 0..100 {
            speed.done(64, start + Duration::from_millis(10) * batch);
        }
        let time = speed.time_for(6400).as_secs_f64();
        assert!((time - 1.0).abs() < 1e-6, "{time}");
        assert_eq!(speed.time_for(0), SHORTEST);
        assert_eq!(speed.time_for(usize::MAX), LONGEST);
        // An hour without requests does not change the speed.
        speed.done(64, start + Duration::from_secs(3600));
        assert!((speed.time_for(6400).as_secs_f64() - 1.0).abs() < 1e-6);
    }
}
