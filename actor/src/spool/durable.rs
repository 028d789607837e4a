//! Writes and moves files so that after a crash each file is either complete or absent.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// Writes `bytes` under a temporary name beside `path`, forces them to the disk, and moves the file to `path`.
///
/// After success the file survives a power failure. After an error `path` is unchanged.
///
/// # Errors
/// The error of the file system, for example if the disk is full.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written {
        // An incomplete file would only take space on a full disk.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    rename(&temporary, path)
}

/// Moves a file and makes the move durable.
///
/// # Errors
/// The error of the file system.
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
