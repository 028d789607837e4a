//! `minuet up`: trains on this machine with a process for each role.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`] | arguments of the command |
//! | [`lifecycle`] | start everything, watch until something ends it, stop in order |
//! | [`journal`] | what happened, in files |
//! | [`session`] | the state of the run since it was started |
//! | [`store_users`] | commands that use the stored games, whose end is waited for |

mod arguments;
pub mod journal;
mod lifecycle;
pub mod session;
mod store_users;

use anyhow::{Context as _, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::BadUsage;

pub use arguments::Arguments;

/// Runs the command.
///
/// # Errors
/// What stopped the run, other than a signal or the time limit.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    // Before any thread or process is started: they inherit the cores.
    leave_cores(arguments.leave_cores)?;
    // Processes that are left are killed when the runtime is dropped.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(lifecycle::run(arguments))
}

/// Takes the last `count` cores from this thread, and so from all threads and processes that it starts. Everything that counts
/// cores then counts the others.
///
/// # Errors
/// [`BadUsage`] if no core would be left; or the system refuses.
fn leave_cores(count: usize) -> anyhow::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let own = sched_getaffinity(None).context("--leave-cores: cannot read the cores of this process")?;
    let kept = without(&own, count);
    let none = format!(
        "--leave-cores {count} leaves no core for the run: it may use {}",
        own.count()
    );
    ensure!(kept.count() > 0, BadUsage(none));
    sched_setaffinity(None, &kept).context("--leave-cores: cannot set the cores of this process")
}

/// Returns the set without its last `count` cores.
fn without(own: &CpuSet, count: usize) -> CpuSet {
    let mut kept = *own;
    let last = (0..CpuSet::MAX_CPU).rev().filter(|&core| own.is_set(core));
    for core in last.take(count) {
        kept.unset(core);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cores_are_left() {
        let mut own = CpuSet::new();
        [1, 4, 5, 9].into_iter().for_each(|core| own.set(core));
        let cores = |set: &CpuSet| (0..64).filter(|&core| set.is_set(core)).collect::<Vec<_>>();
        assert_eq!(cores(&without(&own, 0)), [1, 4, 5, 9]);
        assert_eq!(cores(&without(&own, 2)), [1, 4]);
        assert!(cores(&without(&own, 7)).is_empty());
    }

    #[test]
    fn a_thread_that_leaves_cores_counts_only_the_others_and_no_thread_can_leave_all() {
        // A thread of its own, because the test's other threads keep their cores.
        let counted = std::thread::spawn(|| {
            let before = sched_getaffinity(None).unwrap().count();
            assert!(leave_cores(before as usize).is_err());
            if before > 1 {
                leave_cores(1).unwrap();
                assert_eq!(sched_getaffinity(None).unwrap().count(), before - 1);
            }
        });
        counted.join().unwrap();
    }
}
