//! Other people's programs that tests drive Minuet with: Python packages, NVIDIA's perf_analyzer. `make test` fetches them into the user's
//! cache; a test whose program can be neither found there nor fetched says so and is skipped.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Exit code of the scripts where something can be neither found nor fetched.
const UNREACHABLE: i32 = 3;

/// An interpreter with the packages of `scripts/python/{name}.txt`; `None`, and a word on the terminal, where it cannot be had.
///
/// # Panics
/// Where the script fails in another way.
#[must_use]
pub fn python(name: &str) -> Option<PathBuf> {
    fetched("python_env.py", &[name])
}

/// NVIDIA's perf_analyzer; `None`, and a word on the terminal, where it cannot be had.
///
/// # Panics
/// Where the script fails in another way.
#[must_use]
pub fn perf_analyzer() -> Option<PathBuf> {
    fetched("perf_analyzer.py", &[])
}

/// What a script of `scripts/` fetches, and prints the path of.
#[expect(clippy::expect_used, reason = "only tests call this")]
fn fetched(script: &str, arguments: &[&str]) -> Option<PathBuf> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let asked = Command::new("python3")
        .arg(scripts.join(script))
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .expect("python3 is needed to build Minuet");
    if asked.status.code() == Some(UNREACHABLE) {
        // To the terminal, past the test harness.
        let said = format!(
            "SKIPPED: {script} {arguments:?}: what this test needs is not in the cache and cannot be fetched\n"
        );
        drop(std::io::stderr().write_all(said.as_bytes()));
        return None;
    }
    assert!(
        asked.status.success(),
        "{script} {arguments:?} failed: {}",
        asked.status
    );
    let path = String::from_utf8(asked.stdout).expect("paths are UTF-8 here");
    Some(path.trim().into())
}
