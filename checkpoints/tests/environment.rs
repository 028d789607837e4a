//! Variables of the environment that are not Unicode.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _, process::Command};

use checkpoints::Repository;

/// Name of a variable whose value is not Unicode. It is set in the process that opens the repository.
const ODD: &str = "MINUET_TEST_ODD_VARIABLE";

#[test]
fn a_repository_opens_although_a_variable_is_not_unicode() {
    if std::env::var_os(ODD).is_some() {
        // No request is sent.
        Repository::open("s3://bucket/models").unwrap();
        return;
    }
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "environment::a_repository_opens_although_a_variable_is_not_unicode",
        ])
        .env(ODD, OsStr::from_bytes(b"\xff"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}
