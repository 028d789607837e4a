//! Tests of the replay store: its service through gRPC, and its files through restarts, kills and damage. The tests with a simulated disk
//! are another binary, in `disk/`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archives;
mod attack;
mod common;
mod contention;
mod damage;
mod fuzz;
mod golden;
mod index;
mod kill;
mod reading;
mod redraws;
mod restart;
mod scale;
#[cfg(feature = "s3")]
#[path = "../../checkpoints/tests/common/server.rs"]
mod server;
mod size;
mod territory;
mod versions;
mod wire;
