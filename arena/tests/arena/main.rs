//! Players and matches with real networks (of random weights), a real inference server and real engines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod analysis;
mod common;
mod naming;
mod playing;
mod problems;
mod thinking;
mod versions;
