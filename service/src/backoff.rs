//! Delays between attempts: exponential backoff with jitter, so that many clients of a restarted server do not reconnect at the
//! same moment.
//!
//! Half of each delay is fixed and half is random ("equal jitter", Brooker 2015), so no delay is close to 0.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_util::sync::CancellationToken;

/// Delays between attempts, which double up to a limit.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
    generator: StdRng,
}

impl Backoff {
    /// Makes delays from `first` to `longest`; the first delay lies between `first / 2` and `first`. Equal seeds give equal
    /// delays, so each client should pass a different seed.
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self {
            first,
            longest: longest.max(first),
            attempts: 0,
            generator: StdRng::seed_from_u64(seed),
        }
    }

    /// Makes the delays for connections between roles: 100 ms to 10 s, with a seed from the process id and the clock.
    pub fn for_connections() -> Self {
        let moment = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let seed = moment ^ (u64::from(std::process::id()) << 32);
        Self::new(Duration::from_millis(100), Duration::from_secs(10), seed)
    }

    /// Returns the delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.attempts.min(30));
        self.attempts = self.attempts.saturating_add(1);
        let ceiling = doubled.min(self.longest);
        ceiling.mul_f64(self.generator.random_range(0.5..=1.0))
    }

    /// Starts again with the first delay, after an attempt that succeeded.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Returns the number of delays since the start or the last [`reset`](Self::reset).
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Waits for the next delay. False if `shutdown` was cancelled meanwhile; the caller should then not try again.
    pub async fn wait(&mut self, shutdown: &CancellationToken) -> bool {
        let delay = self.next_delay();
        tokio::select! {
            biased;
            () = shutdown.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(2);

    #[test]
    fn delays_double_within_their_bounds_and_start_again_after_a_reset() {
        let mut backoff = Backoff::new(FIRST, LONGEST, 7);
        for round in 0..2 {
            for attempt in 0..100 {
                let ceiling = FIRST.saturating_mul(1 << attempt.min(20)).min(LONGEST);
                let delay = backoff.next_delay();
                assert!(
                    delay >= ceiling / 2 && delay <= ceiling,
                    "round {round}, attempt {attempt}: {delay:?}"
                );
            }
            backoff.reset();
        }
    }

    #[test]
    fn a_seed_decides_the_delays_and_two_seeds_differ() {
        let delays = |seed| {
            let mut backoff = Backoff::new(FIRST, LONGEST, seed);
            (0..8).map(|_| backoff.next_delay()).collect::<Vec<_>>()
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_takes_the_delay_and_ends_early_on_shutdown() {
        let shutdown = CancellationToken::new();
        let mut backoff = Backoff::new(FIRST, LONGEST, 3);
        let began = Instant::now();
        assert!(backoff.wait(&shutdown).await);
        assert!(began.elapsed() >= FIRST / 2 && began.elapsed() <= FIRST + Duration::from_millis(2));

        shutdown.cancel();
        let began = Instant::now();
        assert!(!backoff.wait(&shutdown).await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
