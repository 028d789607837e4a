//! Tests that cannot run here: [`skip`].

use std::{fs::OpenOptions, io::Write as _};

/// File to which every skip adds a line. `make test` sets it, and prints and counts the lines at the end.
const FILE: &str = "MINUET_SKIPS";
/// Set to `1` where a skip is a failure: in CI.
const FORBIDDEN: &str = "MINUET_FORBID_SKIPS";

/// Reports that a test, or a part of one, does not run on this machine. The caller returns after that.
///
/// `what` names the check that is left out; `why` gives the reason and what to install.
///
/// # Panics
/// If `MINUET_FORBID_SKIPS` is `1`, or if the file of skips cannot be written.
pub fn skip(what: &str, why: &str) {
    let line = format!("{what}: {why}\n");
    // Written to the terminal directly, because the test harness captures eprintln.
    drop(std::io::stderr().write_all(format!("SKIPPED: {line}").as_bytes()));
    if let Some(path) = std::env::var_os(FILE) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the file named by MINUET_SKIPS can be written");
    }
    assert!(
        std::env::var_os(FORBIDDEN).is_none_or(|value| value != "1"),
        "skips are forbidden here (MINUET_FORBID_SKIPS=1), and this test cannot run: {line}"
    );
}
