//! Programs of others that tests use as clients of Minuet: Python packages, NVIDIA's perf_analyzer.
//!
//! `make test` fetches them into the user's cache. A test whose program is neither in the cache nor can be fetched prints that
//! it is skipped.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Exit code of the scripts if a program is neither in the cache nor can be fetched.
const UNREACHABLE: i32 = 3;

/// Returns a Python interpreter with the packages of `scripts/python/{name}.txt`. `None`, with a line on the terminal, if the
/// packages cannot be fetched.
///
/// # Panics
/// If the script fails in another way.
#[must_use]
pub fn python(name: &str) -> Option<PathBuf> {
    fetched("python_env.py", &[name])
}

/// Returns the path of NVIDIA's perf_analyzer. `None`, with a line on the terminal, if it cannot be fetched.
///
/// # Panics
/// If the script fails in another way.
#[must_use]
pub fn perf_analyzer() -> Option<PathBuf> {
    fetched("perf_analyzer.py", &[])
}

/// Runs a script of `scripts/`, and returns the path that it prints; `None` if its program cannot be fetched.
#[expect(clippy::expect_used, reason = "only tests call this")]
fn fetched(script: &str, arguments: &[&str]) -> Option<PathBuf> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let output = Command::new("python3")
        .arg(scripts.join(script))
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .expect("python3 is needed to build Minuet");
    if output.status.code() == Some(UNREACHABLE) {
        // Written to the terminal directly, because the test harness captures eprintln.
        let message = format!(
            "SKIPPED: {script} {arguments:?}: the program of this test is not in the cache and cannot be fetched\n"
        );
        drop(std::io::stderr().write_all(message.as_bytes()));
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
