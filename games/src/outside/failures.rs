//! Games in which the rules failed: [`Failures`].

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of games in a row after which work ends because the rules failed in each of them.
const MOST: u32 = 20;

/// Error: the rules failed in too many games in a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rules of {game} failed in {MOST} games in a row, the last time with: {last}")]
pub struct TooManyFailures {
    /// Name of the game.
    game: String,
    /// Last line of the last reason.
    last: String,
}

/// Counts the games in a row in which the rules failed. Threads share it.
#[derive(Debug, Default)]
pub struct Failures(AtomicU32);

impl Failures {
    /// Counts a game of `game` in which the rules failed. Returns the last line of the reason: the rules themselves have told the rest.
    ///
    /// # Errors
    /// [`TooManyFailures`] if that happened in too many games in a row.
    pub fn add<'a>(&self, game: &str, reason: &'a str) -> Result<&'a str, TooManyFailures> {
        let failed = 1 + self.0.fetch_add(1, Ordering::Relaxed);
        let last = reason.lines().rfind(|line| !line.trim().is_empty());
        let last = last.unwrap_or(reason);
        match failed < MOST {
            true => Ok(last),
            false => Err(TooManyFailures {
                game: game.into(),
                last: last.into(),
            }),
        }
    }

    /// Begins anew, because a game ended by its rules.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_failures_in_a_row_are_an_error_that_names_the_last_one() {
        let failures = Failures::default();
        let add = |reason| failures.add("noughts", reason);
        for _ in 0..19 {
            assert_eq!(add("Traceback\nKeyError: 3\n\n"), Ok("KeyError: 3"));
        }
        failures.clear();
        for _ in 0..19 {
            add("KeyError: 4").unwrap();
        }
        assert_eq!(
            add("Traceback\nKeyError: 5\n").unwrap_err().to_string(),
            "the rules of noughts failed in 20 games in a row, the last time with: KeyError: 5"
        );
    }
}
