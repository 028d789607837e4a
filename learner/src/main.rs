//! `minuet-learner --config run.toml`

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    learner::device::restart_with_sleeping_threads();
    role::main(Role::Learner, learner::run)
}
