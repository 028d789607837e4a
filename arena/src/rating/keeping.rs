//! How many matches' folders are kept: ratings need no more than a line of each match, and games take room.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Removes all match folders in `matches` but the `keep` that were played in last; 0 keeps all. Gives how many went.
///
/// # Errors
/// What the file system says; folders may have been removed before that.
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
            // Without games: it was made and no game has ended.
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
    fn the_last_matches_stay_and_what_is_no_match_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        // In another order than their names'.
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
