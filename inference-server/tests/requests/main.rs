//! Tests with many kinds of requests: the Open Inference Protocol with its public clients, tokens, spans for a collector,
//! misbehaving clients, SIGTERM, metrics.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod figures;
#[path = "../../../service/tests/serve/half_sent.rs"]
mod half_sent;
mod kserve;
mod process;
mod rights;
mod rogue;
mod signal;
mod soak;
#[cfg(feature = "otlp")]
mod spans;
mod unfinished;
