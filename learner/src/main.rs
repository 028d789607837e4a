//! `minuet-learner --config run.toml`

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    role::main(Role::Learner, learner::run)
}
