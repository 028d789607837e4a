//! Damage of the files of a rating, for `minuet doctor`: [`damage`].

use std::{fs, io, path::Path};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::results::{FILE, MATCHES, RatedMatch};
use crate::matches::{GameRecord, folder};

/// Reads the files in the folder of a rating, and returns a sentence about each that cannot be read, or holds a line that cannot.
pub fn damage(folder: &Path) -> Vec<String> {
    let mut found = Vec::from_iter(fault::<RatedMatch>(&folder.join(FILE)));
    let entries = fs::read_dir(folder.join(MATCHES)).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let plan = path.join(folder::PLAN);
        found.extend(
            match fs::read(&plan).map(|bytes| serde_json::from_slice::<Value>(&bytes)) {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(format!("{}: {error}", plan.display())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some(format!("{}: {error}", plan.display())),
            },
        );
        found.extend(fault::<GameRecord>(&path.join(folder::GAMES)));
    }
    found
}

/// Returns a sentence about the first complete line of a file that cannot be read as a `T`. A missing file has no fault.
fn fault<T: DeserializeOwned>(path: &Path) -> Option<String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("{}: {error}", path.display())),
    };
    let complete = &bytes[..bytes.iter().rposition(|&byte| byte == b'\n').unwrap_or(0)];
    let lines = (1..).zip(complete.split(|&byte| byte == b'\n'));
    let mut faults = lines
        .filter(|(_, line)| !line.is_empty())
        .filter_map(|(number, line)| {
            let error = serde_json::from_slice::<T>(line).err()?;
            Some(format!("{}, line {number}: {error}", path.display()))
        });
    faults.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damaged_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        assert_eq!(damage(home.path()), Vec::<String>::new());
        fs::create_dir_all(at("matches/a-vs-b")).unwrap();
        // An incomplete last line was left by a process that was killed.
        fs::write(at("metrics.jsonl"), "{\"x\":1").unwrap();
        fs::write(at("matches/a-vs-b/match.json"), "{}").unwrap();
        assert_eq!(damage(home.path()), Vec::<String>::new());
        fs::write(at("metrics.jsonl"), "garbage{\n").unwrap();
        fs::write(at("matches/a-vs-b/match.json"), "{").unwrap();
        fs::write(at("matches/a-vs-b/games.jsonl"), "\n[]\n").unwrap();
        let found = damage(home.path());
        for (text, words) in
            found
                .iter()
                .zip(["metrics.jsonl, line 1: ", "match.json: ", "games.jsonl, line 2: "])
        {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(found.len(), 3);
    }
}
