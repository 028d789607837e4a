//! Markers of the sealed volumes that are in the archive: one small file for each volume, `archived/<first sequence number>`.
//!
//! ```text
//! marker = {"format": 1, "archive": LOCATION}
//! ```
//! In stores of format 1 a marker is the location alone.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::log::files::Files;

const FOLDER: &str = "archived";

/// Version of markers that this build writes.
const FORMAT: u32 = 1;

/// Versions of markers that this build reads.
pub const FORMATS: &[u32] = &[FORMAT];

#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: u32,
    archive: String,
}

fn marker(folder: &Path, first: u64) -> PathBuf {
    folder.join(FOLDER).join(format!("{first:020}"))
}

/// Returns the first marker that a newer build wrote, and its version.
///
/// # Errors
/// The file system's error.
pub fn newer(files: &dyn Files, folder: &Path, formats: &[u32]) -> io::Result<Option<(PathBuf, u32)>> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }

    let folder = folder.join(FOLDER);
    if !files.exists(&folder) {
        return Ok(None);
    }
    for entry in files.list(&folder)? {
        let found = serde_json::from_slice::<Format>(&files.read(&entry.path)?);
        if let Ok(Format { format }) = found
            && !formats.contains(&format)
        {
            return Ok(Some((entry.path, format)));
        }
    }
    Ok(None)
}

/// True if the volume that begins with `first` is in the archive at `location`.
pub fn is_archived(files: &dyn Files, folder: &Path, first: u64, location: &str) -> bool {
    let Ok(text) = files.read(&marker(folder, first)) else {
        return false;
    };
    match serde_json::from_slice::<Marker>(&text) {
        Ok(marker) => marker.archive == location,
        Err(_) => text == location.as_bytes(),
    }
}

/// Records that a volume is in the archive at `location`.
///
/// # Errors
/// The file system's error.
pub fn remember(files: &dyn Files, folder: &Path, first: u64, location: &str) -> io::Result<()> {
    files.create_folder(&folder.join(FOLDER))?;
    let text = serde_json::to_vec(&Marker {
        format: FORMAT,
        archive: location.into(),
    })?;
    files.replace(&marker(folder, first), &text)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::files::Real;

    #[test]
    fn markers_of_every_format_are_read_and_a_newer_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let is_archived = |first| is_archived(&Real, folder.path(), first, "s3://games");
        remember(&Real, folder.path(), 1, "s3://games").unwrap();
        std::fs::write(marker(folder.path(), 5), "s3://games").unwrap();
        remember(&Real, folder.path(), 9, "s3://others").unwrap();
        assert!(is_archived(1) && is_archived(5) && !is_archived(9) && !is_archived(12));
        assert_eq!(newer(&Real, folder.path(), FORMATS).unwrap(), None);
        let file = marker(folder.path(), 12);
        std::fs::write(&file, r#"{"format":2,"copies":["a","b"]}"#).unwrap();
        assert_eq!(newer(&Real, folder.path(), FORMATS).unwrap(), Some((file, 2)));
    }
}
