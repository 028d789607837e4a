//! Players and matches as others use them: real networks (of random weights), a real inference server, real engines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;
mod naming;
mod playing;
mod thinking;
