//! What tests of several crates need: programs of others, a small disk, random inputs, and skips that are counted.

#![allow(clippy::expect_used, clippy::panic, reason = "only tests call this crate")]

mod disk;
mod fuzz;
mod programs;
mod skip;

pub use disk::SmallDisk;
pub use fuzz::fuzz;
pub use programs::{debian, perf_analyzer, python};
pub use skip::skip;
