//! `minuet-learner --config run.toml`, and what `minuet bench training` starts ([`learner::steps`])

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    learner::device::restart_with_a_fit_environment();
    let mut arguments = std::env::args().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == learner::steps::COMMAND)
    {
        return learner::steps::main(arguments);
    }
    role::main(Role::Learner, learner::run)
}
