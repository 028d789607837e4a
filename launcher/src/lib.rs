//! The launcher: `minuet up` and `minuet grow` start the roles of a run as processes on this machine and watch them.
//!
//! | module | contents |
//! |---|---|
//! | [`up`] | the command `minuet up`: start, watch, stop in order |
//! | [`grow`] | the command `minuet grow`: a second learner, matches, the takeover |
//! | [`run`] | the run's folder: layout, `run.toml`, lock, addresses |
//! | [`plan`] | which processes a run has, and the arguments of each |
//! | [`processes`] | processes that are kept running, their logs, and those left over from an earlier start |
//! | [`follow`] | the record of a run whose roles run elsewhere, e.g. in containers |
//! | [`watch`] | observations of the processes, and the figures computed from them |
//! | [`alarms`] | what is wrong with a run, by which number, and what to do |
//! | [`page`] | metrics pages of the roles |
//! | [`losses`] | the losses in training and on held-out games, as the learner writes them |
//! | [`event`] | what happens in a run; [`screen`] shows it |
//! | [`signals`] | signals and time limits that end a command |

pub mod alarms;
pub mod event;
pub mod follow;
pub mod grow;
mod http;
pub mod losses;
pub mod moment;
pub mod page;
pub mod plan;
pub mod processes;
pub mod run;
pub mod screen;
pub mod signals;
pub mod up;
mod usage;
pub mod watch;

use anyhow::Context as _;

pub use run::{
    folder::new_run,
    game::{check as check_game, differences, template},
};
pub use usage::BadUsage;

/// Runs a command to its end. Processes that are left are killed when the runtime is dropped.
fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    // While a command plays a match on its own thread, the other one supervises the processes.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(command)
}
