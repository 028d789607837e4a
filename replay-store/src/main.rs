//! `minuet-replay-store`: keeps finished games and hands out training batches.

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    role::main(Role::ReplayStore, replay_store::run)
}
