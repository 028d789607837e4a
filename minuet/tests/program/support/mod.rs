//! Parts that several tests share.

#![allow(
    dead_code,
    reason = "the tests of other crates use all of the files from their folders"
)]

pub mod acknowledged;
pub mod metrics;
pub mod run;
#[path = "../../../../studio/tests/common/run_at_work.rs"]
pub mod run_at_work;
pub mod served;
#[cfg(feature = "s3")]
#[path = "../../../../checkpoints/tests/common/server.rs"]
pub mod server;
#[path = "../../../../studio/tests/http/stored.rs"]
pub mod stored;
#[path = "../../../../replay-store/tests/common/synthetic.rs"]
pub mod synthetic;
