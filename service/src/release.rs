//! The version that a program shows: that of the workspace, with the commit if the build names it.

use std::sync::OnceLock;

static SHOWN: OnceLock<String> = OnceLock::new();

/// Names the commit that the program is built from, once, before its arguments are read: `option_env!("MINUET_COMMIT")` of its `main.rs`.
/// If a library read the variable, each commit would compile it anew.
pub fn set_commit(commit: Option<&str>) {
    // A later call in the same process is of the same program.
    let _ = SHOWN.set(with_commit(commit));
}

/// Returns the version for people, e.g. `0.1.0 (1f0c3d5)`; without the commit if the build does not name it.
pub fn version() -> &'static str {
    SHOWN.get_or_init(|| with_commit(None))
}

fn with_commit(commit: Option<&str>) -> String {
    let number = env!("CARGO_PKG_VERSION");
    match commit {
        Some(commit) if !commit.is_empty() => format!("{number} ({commit})"),
        _ => number.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_follows_the_number() {
        assert_eq!(
            with_commit(Some("1f0c3d5")),
            concat!(env!("CARGO_PKG_VERSION"), " (1f0c3d5)")
        );
        assert_eq!(with_commit(Some("")), env!("CARGO_PKG_VERSION"));
        assert_eq!(with_commit(None), env!("CARGO_PKG_VERSION"));
    }
}
