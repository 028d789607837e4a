//! Attempts at problems of the generator game, for the benchmarks that count solved ones.

use std::time::Instant;

use arena::players::solver::{self, Attempt, Solver};
use games::generator::GeneratorGame;

/// Number of problems in progress at the same time.
const AT_ONCE: usize = 32;

/// Plays each problem once, with `visits` per move. Returns the attempts in the order of `starts`, and the time in seconds.
///
/// # Errors
/// The number of visits is out of range, or the network does not answer.
pub fn solve(
    solver: &Solver,
    starts: &[GeneratorGame],
    visits: u32,
    seed: u64,
) -> anyhow::Result<(Vec<Attempt>, f64)> {
    let settings = solver::settings(visits);
    settings.check()?;
    let began = Instant::now();
    let attempts = solver::solve(solver, starts, &settings, seed, AT_ONCE)?;
    Ok((attempts, began.elapsed().as_secs_f64()))
}
