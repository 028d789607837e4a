//! Tests of `minuet arena` and `minuet rating` as processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod matches;
mod rating;
