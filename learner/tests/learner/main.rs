//! Tests of the learner's public interface: expansion, steps, exports and their proof, and the whole role against a replay
//! store over gRPC.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

mod event_file;
mod expansion;
mod export;
mod generator;
mod heads;
mod killed;
mod optimizer;
#[allow(dead_code, reason = "the tests of the inference server use all of it")]
#[path = "../../../onnx/tests/reference/mod.rs"]
mod reference;
mod role;
mod start;
mod targets;
mod territory;
mod training;
