//! The program `minuet-replay-store`, which stores finished games and serves training batches.

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    role::main(Role::ReplayStore, replay_store::run)
}
