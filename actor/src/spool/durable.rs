//! Files that are there whole after a crash, or not at all.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// Writes `bytes` under a temporary name beside `path`, forces them to the disk, and moves them into place.
///
/// When this returns, the file survives a power failure; when it fails, `path` is as it was.
///
/// # Errors
/// Whatever the file system says, a full disk included.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written {
        // Half a file on a full disk only makes the disk fuller.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    rename(&temporary, path)
}

/// Moves a file and makes the move durable.
///
/// # Errors
/// Whatever the file system says.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(to.parent().unwrap_or(Path::new(".")))?;
    match from.parent() {
        Some(folder) if to.parent() != Some(folder) => sync_folder(folder),
        _ => Ok(()),
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
