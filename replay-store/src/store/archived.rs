//! Which sealed volumes are in the archive: one small file for each, `archived/<first sequence number>`, which names the archive.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::log::files::Files;

const FOLDER: &str = "archived";

fn marker(folder: &Path, first: u64) -> PathBuf {
    folder.join(FOLDER).join(format!("{first:020}"))
}

/// True if the volume that begins with `first` is in the archive at `location`.
pub fn is_archived(files: &dyn Files, folder: &Path, first: u64, location: &str) -> bool {
    let found = files.read(&marker(folder, first));
    found.is_ok_and(|archive| archive == location.as_bytes())
}

/// Records that a volume is in the archive at `location`.
///
/// # Errors
/// The file system's error.
pub fn remember(files: &dyn Files, folder: &Path, first: u64, location: &str) -> io::Result<()> {
    files.create_folder(&folder.join(FOLDER))?;
    files.replace(&marker(folder, first), location.as_bytes())
}

/// Removes the record of a volume that is about to be removed.
///
/// # Errors
/// The file system's error.
pub fn forget(files: &dyn Files, folder: &Path, first: u64) -> io::Result<()> {
    let marker = marker(folder, first);
    if files.exists(&marker) {
        files.remove_file(&marker)?;
    }
    Ok(())
}
