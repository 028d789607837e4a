//! Files of a folder that belongs to one process: the lock of the folder, and files of JSON lines ([`LineFile`]).

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::Path,
    thread,
    time::Duration,
};

use serde::Serialize;

/// Name of the file that is locked.
pub(crate) const LOCK: &str = "lock";

/// Returns the sentence of an error about a file or folder.
pub(crate) fn cannot_use(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

/// Pauses between the attempts to lock a folder.
const PAUSE: Duration = Duration::from_millis(10);

/// Locks a folder, which is made if it is missing, for this process until the returned file is closed. `None`: another process has
/// locked it.
///
/// Tries for a tenth of a second: a program that this process starts shares its locks until it runs, so that a lock that was just given up
/// can still be there.
pub(crate) fn lock(folder: &Path) -> io::Result<Option<File>> {
    fs::create_dir_all(folder)?;
    let file = File::create(folder.join(LOCK))?;
    for _ in 0..10 {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// A file of JSON values, one on each line. Only its last line can be incomplete, if the process was killed while writing it.
#[derive(Debug)]
pub(crate) struct LineFile {
    file: File,
    /// Length of all complete lines in bytes.
    length: u64,
}

impl LineFile {
    /// Opens the file, or creates it. Removes an incomplete last line. Returns the bytes of the complete lines too.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut bytes = fs::read(path)?;
        let last = bytes.iter().rposition(|&byte| byte == b'\n');
        let whole = last.map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            bytes.truncate(whole);
        }
        let length = whole as u64;
        Ok((Self { file, length }, bytes))
    }

    /// Appends a line. After an error, later lines can still be appended.
    pub(crate) fn append(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // Removes a partial line that an attempt has left, e.g. on a full disk.
        self.file.set_len(self.length)?;
        // One call writes the whole line, unless the process is killed within the call.
        self.file.write_all(&line)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Makes all lines durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
