//! Parts that several tests share.

pub mod acknowledged;
pub mod metrics;
pub mod program;
#[allow(dead_code, reason = "the tests of the inference server use all of it")]
#[path = "../../../../onnx/tests/reference/mod.rs"]
pub mod reference;
pub mod run;
#[allow(dead_code, reason = "the tests of the studio use all of it")]
#[path = "../../../../studio/tests/common/run_at_work.rs"]
pub mod run_at_work;
pub mod served;
#[cfg(feature = "s3")]
#[path = "../../../../checkpoints/tests/common/server.rs"]
pub mod server;
#[allow(dead_code, reason = "the tests of the studio use all of it")]
#[path = "../../../../studio/tests/http/stored.rs"]
pub mod stored;
#[path = "../../../../replay-store/tests/common/synthetic.rs"]
pub mod synthetic;
