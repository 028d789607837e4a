//! Detects the games of a second replay store.
//!
//! Earlier releases could divide a run's games among several stores on one machine, in the folders `replay`, `replay-2`,
//! `replay-3` and so on. A run has one store now, so games in the other folders would be ignored silently.

use std::path::{Path, PathBuf};

/// Error: a run's folder contains the games of a second replay store.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} holds the games of a second replay store, and a run has one store: one takes hundreds of thousands of positions a second. \
     To merge them: `mkdir old && cp {run}/run.toml old && mv {} old/{name}`, then `minuet games export old.minuet --run old`, \
     then `minuet games import old.minuet --run {run}`",
    .folder.display(), .folder.display(), run = .run.display()
)]
pub struct SecondStore {
    folder: PathBuf,
    run: PathBuf,
    /// Name of the first store's folder.
    name: String,
}

/// Checks that there is no second store beside the store in the folder `first`.
///
/// # Errors
/// [`SecondStore`] if `<first>-2` is a folder.
pub fn check(first: &Path) -> Result<(), SecondStore> {
    let name = first
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let folder = first.with_file_name(format!("{name}-2"));
    if folder.is_dir() {
        return Err(SecondStore {
            run: first.parent().unwrap_or(Path::new(".")).into(),
            folder,
            name,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_of_a_second_store_are_refused_with_the_way_to_merge_them() {
        let run = tempfile::tempdir().unwrap();
        let first = run.path().join("games");
        check(&first).unwrap();
        std::fs::create_dir(run.path().join("games-2")).unwrap();
        let text = check(&first).unwrap_err().to_string();
        for part in ["games-2", "old/games", "games export", "games import"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }
}
