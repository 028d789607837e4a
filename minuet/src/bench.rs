//! `minuet bench` and `minuet lab`: start the program `minuet-bench`, which is next to this one and holds every benchmark and the
//! laboratory.
//!
//! They are a binary of their own, so that `make up` does not build them.

use std::{ffi::OsString, io, os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use anyhow::Context as _;
use clap::Args;

const BINARY: &str = "minuet-bench";

/// Arguments of `minuet bench` and `minuet lab`, which are passed on unread.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// Arguments; --help lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Error: the program with the benchmarks is not there.
#[derive(Debug, thiserror::Error)]
#[error("there is no {}; releases have none: build it in a clone with `cargo build --release --locked -p bench`", .0.display())]
struct NotBuilt(PathBuf);

/// Replaces this process by `minuet-bench` with `command`, if there is one, and the arguments. Returns only if that fails.
pub fn run(command: Option<&str>, arguments: Arguments) -> anyhow::Result<()> {
    let folder = service::process::programs().context("cannot find the folder of this program")?;
    let program = folder.join(BINARY);
    let error = Command::new(&program)
        .args(command)
        .args(arguments.arguments)
        .exec();
    if error.kind() == io::ErrorKind::NotFound {
        return Err(NotBuilt(program).into());
    }
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
