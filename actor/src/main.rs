//! `minuet-actor`: see the library.

use std::process::ExitCode;

use service::role::{self, Role};

fn main() -> ExitCode {
    role::main(Role::Actor, actor::run)
}
