//! How long to wait before the next attempt: exponential, with jitter, so that a hundred clients of a
//! server that comes back do not all come at once.
//!
//! Half of each delay is fixed and half is drawn ("equal jitter", Brooker 2015): never so short that
//! an attempt is wasted, never in step with others.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio_util::sync::CancellationToken;

/// Delays between attempts. Each is up to twice as long as the one before, up to a limit.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    attempts: u32,
    generator: StdRng,
}

impl Backoff {
    /// Delays from `first` (the first delay lies between half of it and all of it) to `longest`.
    /// Different clients give different seeds; the same seed gives the same delays.
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self {
            first,
            longest: longest.max(first),
            attempts: 0,
            generator: StdRng::seed_from_u64(seed),
        }
    }

    /// What a role uses to reach another: 100 ms to 10 s, seeded by the process and the moment.
    pub fn for_connections() -> Self {
        let moment = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let seed = moment ^ (u64::from(std::process::id()) << 32);
        Self::new(Duration::from_millis(100), Duration::from_secs(10), seed)
    }

    /// The delay before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.attempts.min(30));
        self.attempts = self.attempts.saturating_add(1);
        let ceiling = doubled.min(self.longest);
        ceiling.mul_f64(self.generator.random_range(0.5..=1.0))
    }

    /// An attempt succeeded: the next delay is a first one again.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Attempts since the start or the last [`reset`](Self::reset).
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Waits for the next delay. False if `shutdown` came first: there should be no further attempt.
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
