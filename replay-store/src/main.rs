//! The program `minuet-replay-store`, which stores finished games and serves training batches.

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    service::release::set_commit(option_env!("MINUET_COMMIT"));
    role::main(Role::ReplayStore, replay_store::run)
}
