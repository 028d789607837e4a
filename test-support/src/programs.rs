//! Programs of others that tests use: Python packages, NVIDIA's perf_analyzer, programs from Debian.
//!
//! `make test` fetches them into the user's cache. A test whose program is neither in the cache nor can be fetched is skipped.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::skip;

/// Exit code of the scripts if a program is neither in the cache nor can be fetched.
const UNREACHABLE: i32 = 3;

/// Returns a Python interpreter with the packages of `scripts/python/{name}.txt`. `None`, and a counted skip, if the packages
/// cannot be fetched.
///
/// # Panics
/// If the script fails in another way.
#[must_use]
pub fn python(name: &str) -> Option<PathBuf> {
    fetched("python_env.py", &[name])
}

/// Returns the path of NVIDIA's perf_analyzer. `None`, and a counted skip, if it cannot be fetched.
///
/// # Panics
/// If the script fails in another way.
#[must_use]
pub fn perf_analyzer() -> Option<PathBuf> {
    fetched("perf_analyzer.py", &[])
}

/// Returns the path of a program that Debian packages: one of those that `scripts/debian_program.py` lists. `None`, and a
/// counted skip, if it is not installed and cannot be fetched.
///
/// # Panics
/// If the script fails in another way.
#[must_use]
pub fn debian(name: &str) -> Option<PathBuf> {
    fetched("debian_program.py", &[name])
}

/// Runs a script of `scripts/`, and returns the path that it prints; `None` if its program cannot be fetched.
fn fetched(script: &str, arguments: &[&str]) -> Option<PathBuf> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let output = Command::new("python3")
        .arg(scripts.join(script))
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .expect("python3 is needed to build Minuet");
    if output.status.code() == Some(UNREACHABLE) {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        skip(
            &test,
            &format!(
                "scripts/{script} {} cannot fetch its program",
                arguments.join(" ")
            ),
        );
        return None;
    }
    assert!(
        output.status.success(),
        "{script} {arguments:?} failed: {}",
        output.status
    );
    let path = String::from_utf8(output.stdout).expect("paths are UTF-8 here");
    Some(path.trim().into())
}
