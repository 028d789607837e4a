//! Files of figures over time: lines of JSON, their reader ([`tail`]), and scalars for TensorBoard ([`event_file`]).

pub mod event_file;
pub mod tail;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

pub use event_file::EventFile;
pub use tail::Tail;

/// Largest size of a file of lines, in bytes; a larger file is renamed and a new one begun.
const MAX_BYTES: u64 = 64 << 20;

/// A file of JSON objects, one per line. A file above 64 MiB is renamed to `….1.jsonl`, which replaces the previous file of
/// that name.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: File,
    most: u64,
}

impl Lines {
    /// Opens the file at `path` for appending; creates the file and its folder if necessary.
    ///
    /// # Errors
    /// Error of the file system.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(Self {
            path: path.into(),
            file: append_to(path)?,
            most: MAX_BYTES,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line with one write, so that a killed process leaves at most the last line incomplete.
    ///
    /// # Errors
    /// Error of the file system.
    pub fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        if self.file.metadata()?.len() > self.most {
            durable::rename(&self.path, self.path.with_extension("1.jsonl"))?;
            self.file = append_to(&self.path)?;
        }
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_over_restarts_and_bounded() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("new/metrics.jsonl");
        Lines::open(&path).unwrap().append(&1).unwrap();
        let mut lines = Lines::open(&path).unwrap();
        lines.append(&[2, 3]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n[2,3]\n");
        lines.most = 4;
        lines.append(&4).unwrap();
        lines.append(&5).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "4\n5\n");
        let aside = fs::read_to_string(path.with_extension("1.jsonl")).unwrap();
        assert_eq!(aside, "1\n[2,3]\n");
    }
}
