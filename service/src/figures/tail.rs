//! [`Tail`]: a file of JSON lines that another process appends to.

use std::{
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::filesystem::{open_below, open_regular};

/// Most bytes that one call reads, so that a long file is read in several calls.
const CHUNK: u64 = 8 << 20;
/// Largest file that is read, in bytes: twice the size at which [`Lines`](super::Lines) begins a new one.
const LARGEST: u64 = 2 * super::MAX_BYTES;

/// A growing file of JSON lines, and how far it was read.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    /// Folder that is not left, by links for example; `None`: every path is followed.
    within: Option<PathBuf>,
    offset: u64,
}

impl Tail {
    /// Creates a reader at the beginning of the file, which need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            within: None,
            offset: 0,
        }
    }

    /// Creates a reader of a file in the folder of somebody else, which [`open_below`] opens.
    pub fn below(folder: &Path, file: &Path) -> Self {
        Self {
            within: Some(folder.into()),
            ..Self::new(file.into())
        }
    }

    /// Reads the complete lines that were appended since the last call, at most some megabytes. Lines that are no `T` are skipped,
    /// since a file may hold lines of several kinds. A file that is shorter than what was read so far is taken for a new file and
    /// read from its beginning. Nothing is read of what is not a regular file, or larger than 128 MiB.
    pub fn read<T: DeserializeOwned>(&mut self) -> Vec<T> {
        let bytes = self.bytes().unwrap_or_default();
        let whole = bytes
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        self.offset += whole as u64;
        let lines = bytes
            .get(..whole)
            .unwrap_or_default()
            .split(|&byte| byte == b'\n');
        lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    /// Reads all complete lines that were appended since the last call.
    pub fn read_all<T: DeserializeOwned>(&mut self) -> Vec<T> {
        let mut lines = Vec::new();
        loop {
            let before = self.offset;
            lines.extend(self.read());
            if self.offset == before {
                return lines;
            }
        }
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut file = match &self.within {
            None => open_regular(&self.path)?,
            Some(folder) => open_below(folder, &self.path)?,
        };
        let length = file.metadata()?.len();
        if length > LARGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if length < self.offset {
            self.offset = 0;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(CHUNK).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        io::Write as _,
    };

    use super::*;

    #[test]
    fn complete_lines_are_read_once_and_a_new_file_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut tail = Tail::new(path.clone());
        assert!(tail.read::<u32>().is_empty());
        let mut file = File::create(&path).unwrap();
        write!(file, "1\n\"other\"\n2\n3").unwrap();
        assert_eq!(tail.read::<u32>(), [1, 2]);
        assert!(tail.read::<u32>().is_empty());
        writeln!(file, "3").unwrap();
        assert_eq!(tail.read::<u32>(), [33]);
        fs::write(&path, "7\n").unwrap();
        assert_eq!(tail.read::<u32>(), [7]);
        File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(tail.read_all::<u32>().is_empty());
    }
}
