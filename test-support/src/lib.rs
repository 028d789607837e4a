//! Helpers for the tests of several crates: third-party programs, a small disk, random inputs, counted memory, and counted skips.

#![allow(clippy::expect_used, clippy::panic, reason = "only tests call this crate")]

mod disk;
mod fuzz;
mod memory;
mod programs;
mod skip;

pub use disk::SmallDisk;
pub use fuzz::fuzz;
pub use memory::peak_memory;
pub use programs::{debian, perf_analyzer, python};
pub use skip::skip;
