//! `minuet-inference-server`: the inference server as a process.

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    role::main(Role::InferenceServer, inference_server::run)
}
