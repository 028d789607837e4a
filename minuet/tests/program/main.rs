//! The program `minuet` as a user runs it, with real processes.
//!
//! The tests need the roles' binaries next to `minuet`, which `make test` builds first. One program has all tests, so that they are built
//! and linked once, and run side by side: most of them wait for processes most of the time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod analysis;
mod analyze;
mod arena;
mod chaos;
mod damaged;
mod doctor;
mod engine;
mod examples;
mod faults;
mod golden;
mod gpu_script;
mod growing;
mod hostile;
mod imported;
mod networks;
mod pages;
mod plan;
mod resume;
mod rules;
mod sources;
mod stored_games;
mod studio;
mod support;
mod up;
mod whole_loop;
