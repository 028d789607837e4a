//! Helpers for the tests of several crates: third-party programs, a small disk, examples of the book, random inputs, counted memory, counted skips, golden
//! folders, a replay store in memory, and waiting.

#![allow(clippy::expect_used, clippy::panic, reason = "only tests call this crate")]

mod disk;
mod examples;
mod fuzz;
mod golden;
mod memory;
mod programs;
mod skip;
mod store;
mod wait;

pub use disk::SmallDisk;
pub use examples::{Example, examples};
pub use fuzz::fuzz;
pub use golden::{all_golden, copy_folder, new_golden, own_golden, snapshot};
pub use memory::peak_memory;
pub use programs::{debian, perf_analyzer, python};
pub use skip::skip;
pub use store::{Batches, FakeStore, GameFate};
pub use wait::{FOR_EVER, in_time, until};
