//! The launcher: `minuet up` and `minuet grow` start the roles of a run as processes on this machine and watch them.

pub mod grow;
pub mod up;
mod usage;

pub use usage::BadUsage;
