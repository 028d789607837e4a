//! `minuet up`: trains on this machine with a process for each role.
//!
//! | module | contents |
//! |---|---|
//! | [`arguments`] | arguments of the command |
//! | [`lifecycle`] | start everything, watch until something ends it, stop in order |
//! | [`session`] | the state of the run since it was started |

mod arguments;
mod lifecycle;
mod session;

pub use arguments::Arguments;

/// Runs the command.
///
/// # Errors
/// What stopped the run, other than a signal or the time limit.
pub fn run(arguments: Arguments) -> anyhow::Result<()> {
    crate::block_on(lifecycle::run(arguments))
}
