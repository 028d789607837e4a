//! `minuet`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    minuet::run(std::env::args_os())
}
