//! Figures over time, as files: lines of JSON that any program reads, and scalars for TensorBoard ([`event_file`]).

pub mod event_file;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

pub use event_file::EventFile;

/// A file of lines beyond this is put aside (one is kept), in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A file that JSON objects are appended to, one a line. It is bounded: beyond 64 MiB it is put aside as `….1.jsonl`, in
/// place of the one that was put aside before.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: File,
    most: u64,
}

impl Lines {
    /// Appends to the file at `path`, which is made if it is not there, and so is its folder.
    ///
    /// # Errors
    /// What the file system says.
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

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line, by one write: a process that is killed leaves whole lines, or a torn last one.
    ///
    /// # Errors
    /// What the file system says.
    pub fn append(&mut self, line: &impl Serialize) -> io::Result<()> {
        if self.file.metadata()?.len() > self.most {
            fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
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
