//! Tests of `minuet arena` and `minuet rating` as processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/disk.rs"]
mod disk;
mod matches;
mod rating;
