//! `minuet up`: trains on this machine with a process for each role.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`] | arguments of the command |
//! | [`cores`] | cores that the run leaves to others |
//! | [`lifecycle`] | start everything, watch until something ends it, stop in order |
//! | [`journal`] | what happened, in files |
//! | [`session`] | the state of the run since it was started |

mod arguments;
mod cores;
pub mod journal;
mod lifecycle;
pub mod session;

use anyhow::Context as _;

pub use arguments::Arguments;

/// Runs the command.
///
/// # Errors
/// What stopped the run, other than a signal or the time limit.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    // Before any thread or process is started: they inherit the cores.
    cores::leave(arguments.leave_cores)?;
    // Processes that are left are killed when the runtime is dropped.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(lifecycle::run(arguments))
}
