//! `minuet`: see the library.

use std::process::ExitCode;

use network::trial;
use service::role::Role;

fn main() -> ExitCode {
    // In a release, `minuet-inference-server` calls this program.
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(Role::InferenceServer.name())
        && words.next().as_deref() == Some(trial::ARGUMENT)
    {
        return trial::main();
    }
    service::release::set_commit(option_env!("MINUET_COMMIT"));
    minuet::run(std::env::args_os())
}
