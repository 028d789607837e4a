//! How others reach the server: the Open Inference Protocol with its public clients, TLS and tokens, and clients that behave
//! as badly as they can.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../common/mod.rs"]
mod common;
mod kserve;
mod rights;
mod rogue;
mod soak;
