//! The roles' log files: opened for a process to append to, rotated, and quoted when a process dies.
//!
//! A role writes to its file directly, so its log is complete if `minuet up` is killed, and a full pipe cannot block the role. A file
//! that has grown too large is copied to `.log.1` and truncated. Lines written between the copy and the truncation are lost; that
//! time is some microseconds, once in many megabytes.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

/// Size in bytes from which a log is rotated. The logs of a process have at most twice this size.
pub const LARGEST: u64 = 16 * 1024 * 1024;

/// Opens a log for a process to append to.
///
/// # Errors
/// The file cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Moves a log of more than `largest` bytes to `.log.1`.
///
/// # Errors
/// The file cannot be copied or truncated.
pub fn rotate(path: &Path, largest: u64) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() > largest) {
        fs::copy(path, previous(path))?;
        OpenOptions::new().write(true).open(path)?.set_len(0)?;
    }
    Ok(())
}

fn previous(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Returns the last `lines` lines written after the first `from` bytes, in order; none if the file cannot be read.
pub fn tail(path: &Path, from: u64, lines: usize) -> Vec<String> {
    /// Number of bytes that are read from the end of the file.
    const REACH: u64 = 16 * 1024;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        // A file that was truncated since then contains only newer lines.
        let from = if from > length { 0 } else { from };
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(REACH))))?;
        let mut bytes = Vec::new();
        file.take(REACH).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = all.len().saturating_sub(lines);
    all[skipped..].iter().map(|line| (*line).to_owned()).collect()
}

/// Returns the length of a log, the offset of the next process's lines; 0 if there is no log.
pub fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_large_log_is_moved_away_and_its_writer_continues() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("actor-1.log");
        let mut writer = open(&path).unwrap();
        for line in 0..10 {
            writeln!(writer, "line {line}").unwrap();
            rotate(&path, 40).unwrap();
        }
        let before = fs::read_to_string(folder.path().join("actor-1.log.1")).unwrap();
        let after = fs::read_to_string(&path).unwrap();
        assert_eq!(
            before,
            (0..6).map(|line| format!("line {line}\n")).collect::<String>()
        );
        assert_eq!(
            after,
            (6..10).map(|line| format!("line {line}\n")).collect::<String>()
        );
    }

    #[test]
    fn the_tail_contains_only_lines_of_the_last_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learner.log");
        assert!(tail(&path, 0, 3).is_empty());
        let mut writer = open(&path).unwrap();
        writeln!(writer, "the one before").unwrap();
        let from = length(&path);
        writeln!(writer, "first\n\nsecond\n\x1bthird\u{fffd}").unwrap();
        assert_eq!(tail(&path, from, 9), ["first", "second", "\x1bthird\u{fffd}"]);
        assert_eq!(tail(&path, from, 1), ["\x1bthird\u{fffd}"]);
        assert_eq!(tail(&path, 100_000, 9).len(), 4, "the log was truncated");
        writeln!(writer, "{}", "x".repeat(100_000)).unwrap();
        assert_eq!(tail(&path, 0, 1)[0].len(), 16 * 1024 - 1);
    }
}
