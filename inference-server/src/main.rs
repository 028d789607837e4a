//! `minuet-inference-server`: the inference server as a process.

use std::process::ExitCode;

use network::trial;
use service::role::{self, Role};

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(trial::ARGUMENT) {
        return trial::main();
    }
    service::release::set_commit(option_env!("MINUET_COMMIT"));
    role::main(Role::InferenceServer, inference_server::run)
}
