//! Finds files that belong to the programs, in folders relative to them.

use std::path::{Path, PathBuf};

/// Returns the folder of this program; the working folder if the system does not name it.
pub fn programs() -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    executable.parent().unwrap_or(Path::new(".")).into()
}

/// Returns the path of the first `name` that exists in one of `folders`, which are relative to `programs`, with links
/// resolved.
///
/// # Errors
/// The folders that were searched, as text, if there is none.
pub fn find<const N: usize>(programs: &Path, folders: [&str; N], name: &str) -> Result<PathBuf, String> {
    let folders = folders.map(|relative| programs.join(relative));
    let found = folders
        .iter()
        .find_map(|folder| folder.join(name).canonicalize().ok());
    found.ok_or_else(|| folders.map(|folder| folder.display().to_string()).join(", "))
}
