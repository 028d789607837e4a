//! Removes the folders of old matches. Ratings need only one line of each match, and the games take room.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Name of the folder that holds the folders of the matches.
pub const MATCHES: &str = "matches";

/// Removes all match folders in `matches` except the `keep` most recent ones; 0 keeps all. Returns the number of removed folders.
///
/// # Errors
/// The error of the file system. Some folders may have been removed before.
pub fn keep_newest(matches: &Path, keep: usize) -> io::Result<usize> {
    if keep == 0 {
        return Ok(0);
    }
    let mut folders: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(matches)? {
        let path = entry?.path();
        let is_match = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains("-vs-"));
        if is_match && path.is_dir() {
            // A match without a finished game has no file of games.
            let games = fs::metadata(path.join("games.jsonl")).or_else(|_| fs::metadata(&path));
            folders.push((games?.modified()?, path));
        }
    }
    folders.sort();
    let gone = folders.len().saturating_sub(keep);
    for (_, path) in &folders[..gone] {
        fs::remove_dir_all(path)?;
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::Duration};

    use super::*;

    #[test]
    fn the_newest_matches_and_other_folders_are_kept() {
        let home = tempfile::tempdir().unwrap();
        // The times differ from the order of the names.
        for (second, name) in [(3, "1-vs-0-aa"), (1, "2-vs-1-aa"), (2, "3-vs-1-aa")] {
            let folder = home.path().join(name);
            fs::create_dir(&folder).unwrap();
            let games = File::create(folder.join("games.jsonl")).unwrap();
            games
                .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second))
                .unwrap();
        }
        fs::create_dir(home.path().join("somebody's own")).unwrap();
        let names = || {
            let entries = fs::read_dir(home.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        assert_eq!(keep_newest(home.path(), 0).unwrap(), 0);
        assert_eq!(keep_newest(home.path(), 3).unwrap(), 0);
        assert_eq!(names().len(), 4);
        assert_eq!(keep_newest(home.path(), 2).unwrap(), 1);
        assert_eq!(names(), ["1-vs-0-aa", "3-vs-1-aa", "somebody's own"]);
        assert_eq!(keep_newest(home.path(), 1).unwrap(), 1);
        assert_eq!(names(), ["1-vs-0-aa", "somebody's own"]);
    }
}
