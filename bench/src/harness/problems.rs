//! Attempts at problems of the generator game, for the benchmarks that count solved ones.

use std::time::Instant;

use arena::players::solver::{self, Attempt};
use games::generator::GeneratorGame;
use network::batched::EvaluationSource;

/// Number of problems in progress at the same time.
const AT_ONCE: usize = 32;

/// Plays each problem once, with `visits` per move. Returns the attempts in the order of `starts`, and the time in seconds.
///
/// # Errors
/// The number of visits is out of range, or the network does not answer.
pub fn solve(
    source: &EvaluationSource,
    starts: &[GeneratorGame],
    visits: u32,
    seed: u64,
) -> anyhow::Result<(Vec<Attempt>, f64)> {
    let settings = solver::settings(visits);
    settings.check()?;
    let began = Instant::now();
    let attempts = solver::solve(source, starts, &settings, seed, AT_ONCE)?;
    Ok((attempts, began.elapsed().as_secs_f64()))
}

/// Interval of a share of `all` by Wilson (1927), 95 %.
pub fn wilson(count: f64, all: f64) -> [f64; 2] {
    const Z: f64 = 1.959_964;
    if all <= 0.0 {
        return [0.0, 1.0];
    }
    let (share, square) = (count / all, Z * Z / all);
    let middle = share + square / 2.0;
    let half = (share * (1.0 - share) * square + square * square / 4.0).sqrt();
    [middle - half, middle + half].map(|end| (end / (1.0 + square)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the formula from Brown, Cai and DasGupta (2001): 0 of 10 and 5 of 10.
    #[test]
    fn the_interval_is_that_of_wilson() {
        let near = |found: [f64; 2], expected: [f64; 2]| {
            let both = found.iter().zip(expected);
            assert!(
                both.clone()
                    .all(|(found, expected)| (found - expected).abs() < 5e-4),
                "{found:?}"
            );
        };
        near(wilson(0.0, 10.0), [0.0, 0.2775]);
        near(wilson(5.0, 10.0), [0.2366, 0.7634]);
        near(wilson(0.0, 0.0), [0.0, 1.0]);
    }
}
