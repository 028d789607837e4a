//! The number of threads that evaluate, each a batch of its own, chosen by the speed that was measured with each number.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::batch::{Batch, RunError, Runner};

/// Number of rounds of a measurement. Each candidate has its turn in every round, and its best round counts, so that other
/// work on the machine has little effect.
const ROUNDS: usize = 5;
/// Shortest duration of one candidate's turn.
const TURN: Duration = Duration::from_millis(40);
/// A number of threads is chosen over a smaller one if it is faster by more than this share.
const GAIN: f64 = 0.05;
/// Share of processor time that more threads may cost in addition, on a busy machine.
const COST: f64 = 0.2;
/// Share of a core from which a measurement with one thread counts as undisturbed.
const QUIET: f64 = 0.85;

/// Speed of `threads` threads together, each of which computes batches of the largest size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadSpeed {
    /// Number of threads.
    pub threads: usize,
    /// Positions per second.
    pub positions_per_second: f64,
    /// Positions per second of processor time; 0 if the system does not report it.
    pub positions_per_cpu_second: f64,
    /// Average number of cores that the measurement got. Less than 1 with one thread: other programs used the cores too.
    pub cores: f64,
}

/// Returns the numbers of threads that are measured on a machine of `cores` cores: the powers of two below `cores`, and
/// `cores`.
pub fn candidates(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1_usize), |threads| threads.checked_mul(2));
    let mut candidates: Vec<usize> = powers.take_while(|&threads| threads < cores).collect();
    candidates.push(cores.max(1));
    candidates
}

/// Time and work of one candidate's turns.
#[derive(Clone, Copy, Default)]
struct Turns {
    best: f64,
    positions: f64,
    seconds: f64,
    cpu_seconds: f64,
}

/// Measures runners of the same model, each on a thread of its own: one alone, and more of them up to all. Nothing else in
/// this process may compute meanwhile.
///
/// # Errors
/// [`RunError`] if a runner fails.
pub fn measure(runners: &mut [Box<dyn Runner>], batch: &Batch) -> Result<Vec<ThreadSpeed>, RunError> {
    for runner in runners.iter_mut() {
        runner.run(batch.clone())?;
    }
    let counts = candidates(runners.len());
    let mut turns = vec![Turns::default(); counts.len()];
    for _ in 0..ROUNDS {
        for (&threads, turns) in counts.iter().zip(&mut turns) {
            let (began, used) = (Instant::now(), cpu_seconds());
            let runs = together(runners.iter_mut().take(threads), batch)?;
            let (positions, seconds) = ((runs * batch.size()) as f64, began.elapsed().as_secs_f64());
            turns.best = turns.best.max(positions / seconds);
            turns.positions += positions;
            turns.seconds += seconds;
            turns.cpu_seconds += cpu_seconds() - used;
        }
    }
    let measured = counts.into_iter().zip(turns);
    Ok(measured
        .map(|(threads, turns)| ThreadSpeed {
            threads,
            positions_per_second: turns.best,
            positions_per_cpu_second: if turns.cpu_seconds > 0.0 {
                turns.positions / turns.cpu_seconds
            } else {
                0.0
            },
            cores: turns.cpu_seconds / turns.seconds,
        })
        .collect())
}

/// Lets each runner compute for one turn on a thread of its own. Returns the number of batches of all.
fn together<'a>(
    runners: impl Iterator<Item = &'a mut Box<dyn Runner>>,
    batch: &Batch,
) -> Result<usize, RunError> {
    thread::scope(|scope| {
        let turns: Vec<_> = runners
            .map(|runner| scope.spawn(|| turn(runner.as_mut(), batch)))
            .collect();
        turns.into_iter().try_fold(0, |runs, turn| {
            let ended = turn.join();
            Ok(runs + ended.map_err(|_| RunError("a thread that measures has failed".into()))??)
        })
    })
}

/// Computes batches for one turn. Returns their number.
fn turn(runner: &mut dyn Runner, batch: &Batch) -> Result<usize, RunError> {
    let (began, mut runs) = (Instant::now(), 0);
    while runs == 0 || began.elapsed() < TURN {
        runner.run(batch.clone())?;
        runs += 1;
    }
    Ok(runs)
}

/// Returns the processor time of this process so far, in seconds; 0 if the system does not report it.
fn cpu_seconds() -> f64 {
    service::process::usage(std::process::id()).map_or(0.0, |usage| usage.cpu_seconds)
}

/// True if the measurement with one thread had a core for itself, so that the speeds hold for a quiet machine.
pub fn was_quiet(speeds: &[ThreadSpeed]) -> bool {
    let single = speeds.iter().find(|speed| speed.threads == 1);
    single.is_none_or(|single| single.positions_per_cpu_second == 0.0 || single.cores >= QUIET)
}

/// Chooses a number of threads. `None` if nothing was measured.
///
/// On a quiet machine that is the smallest number that no larger one beats by more than a twentieth. If other programs used
/// the cores, the speeds are not comparable: the threads wait for each other, so all wait for the one that has no core. Then
/// the largest number is chosen that costs at most a fifth more processor time than one thread.
pub fn choose(speeds: &[ThreadSpeed]) -> Option<usize> {
    if was_quiet(speeds) {
        let rates = speeds.iter().map(|speed| speed.positions_per_second);
        let fastest = rates.fold(0.0, f64::max);
        let near = speeds
            .iter()
            .filter(|speed| fastest <= speed.positions_per_second * (1.0 + GAIN));
        return near.map(|speed| speed.threads).min();
    }
    let single = speeds.iter().find(|speed| speed.threads == 1)?;
    let cheap = speeds
        .iter()
        .filter(|speed| single.positions_per_cpu_second <= speed.positions_per_cpu_second * (1.0 + COST));
    cheap.map(|speed| speed.threads).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Outputs;

    fn speed(threads: usize, positions_per_second: f64, cores: f64) -> ThreadSpeed {
        ThreadSpeed {
            threads,
            positions_per_second,
            positions_per_cpu_second: positions_per_second / cores,
            cores,
        }
    }

    #[test]
    fn candidates_are_powers_of_two_and_all_cores() {
        assert_eq!(candidates(0), [1]);
        assert_eq!(candidates(1), [1]);
        assert_eq!(candidates(2), [1, 2]);
        assert_eq!(candidates(6), [1, 2, 4, 6]);
        assert_eq!(candidates(16), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn more_threads_are_chosen_only_if_they_gain() {
        let chosen = |rates: &[(usize, f64)]| {
            let speeds: Vec<ThreadSpeed> = rates
                .iter()
                .map(|&(threads, rate)| speed(threads, rate, threads as f64))
                .collect();
            choose(&speeds)
        };
        assert_eq!(chosen(&[]), None);
        assert_eq!(chosen(&[(1, 8_000.0)]), Some(1));
        assert_eq!(chosen(&[(1, 8_000.0), (2, 14_800.0)]), Some(2));
        assert_eq!(chosen(&[(1, 8_000.0), (2, 8_300.0)]), Some(1));
        assert_eq!(
            chosen(&[(1, 8_000.0), (2, 15_000.0), (4, 15_300.0), (8, 9_000.0)]),
            Some(2)
        );
    }

    #[test]
    fn on_a_busy_machine_the_cost_in_processor_time_decides() {
        // Other programs took most of both cores, so two threads were no faster.
        let busy = [speed(1, 1_631.0, 0.20), speed(2, 1_569.0, 0.21)];
        assert!(!was_quiet(&busy));
        assert_eq!(choose(&busy), Some(2));
        let wasteful = [
            speed(1, 1_631.0, 0.20),
            speed(2, 1_569.0, 0.21),
            speed(4, 1_600.0, 0.40),
        ];
        assert_eq!(choose(&wasteful), Some(2));
        assert!(was_quiet(&[speed(1, 8_000.0, 0.97)]));
    }

    /// Sleeps for this time instead of computing.
    struct Sleepy(Duration);

    impl Runner for Sleepy {
        fn run(&mut self, _: Batch) -> Result<Outputs, RunError> {
            thread::sleep(self.0);
            Ok(Outputs::new(Vec::new(), Vec::new()))
        }
    }

    #[test]
    fn each_number_of_threads_has_a_speed_of_its_own() {
        let sleepy = || -> Box<dyn Runner> { Box::new(Sleepy(Duration::from_millis(20))) };
        let mut runners = vec![sleepy(), sleepy(), sleepy()];
        let speeds = measure(&mut runners, &[[0]; 8].into_iter().collect()).unwrap();
        assert_eq!(
            speeds.iter().map(|speed| speed.threads).collect::<Vec<_>>(),
            [1, 2, 3]
        );
        assert!(speeds[0].positions_per_second <= 400.0, "{speeds:?}");
        assert!(speeds[2].positions_per_second <= 1200.0, "{speeds:?}");
        assert!(
            speeds[2].positions_per_second > 2.0 * speeds[0].positions_per_second,
            "{speeds:?}"
        );
    }
}
