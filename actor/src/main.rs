//! `minuet-actor`: see the library.

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    service::release::set_commit(option_env!("MINUET_COMMIT"));
    role::main(Role::Actor, actor::run)
}
