//! The program `minuet-learner`. It runs the learner, or the command of [`learner::training::steps`].

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    learner::torch::device::restart_with_torch_environment();
    let mut arguments = std::env::args().skip(1);
    if arguments
        .next()
        .is_some_and(|first| first == learner::training::steps::COMMAND)
    {
        return learner::training::steps::main(arguments);
    }
    service::release::set_commit(option_env!("MINUET_COMMIT"));
    role::main(Role::Learner, learner::run)
}
