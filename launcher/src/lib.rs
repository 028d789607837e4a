//! The launcher: `minuet up` starts the roles of a run as processes on this machine and watches them.
//!
//! | module | contents |
//! |---|---|
//! | [`up`] | the command `minuet up`: start, watch, stop in order |
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
pub mod losses;
pub mod moment;
pub mod page;
pub mod plan;
pub mod processes;
pub mod run;
pub mod screen;
pub mod signals;
pub mod up;
pub mod watch;

pub use run::{
    folder::new_run,
    game::{check as check_game, differences, template},
};

/// Error: an argument of a command cannot be used. The text says which one and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadUsage(pub String);
