//! Matches and ratings as a person uses them: `minuet arena`, `minuet rating`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../support/disk.rs"]
mod disk;
mod matches;
mod rating;
