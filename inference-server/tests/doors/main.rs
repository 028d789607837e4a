//! How others reach the server: the Open Inference Protocol with its public clients, TLS and tokens, what a
//! collector of spans is told, and clients that behave as badly as they can.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod figures;
mod kserve;
mod process;
mod rights;
mod rogue;
mod signal;
mod soak;
#[cfg(feature = "otlp")]
mod spans;
