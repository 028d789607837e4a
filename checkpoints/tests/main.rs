//! The model repository in a folder and on a real S3-compatible server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod damage;
#[cfg(feature = "s3")]
mod environment;
mod lease;
mod publish;
#[cfg(feature = "s3")]
mod s3;
mod versions;
mod watch_and_prune;
