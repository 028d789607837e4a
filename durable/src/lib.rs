//! Writes and moves files so that after a crash or a power failure each file is either complete or absent. [`frame`] has the frames of
//! files that are written piece by piece.
//!
//! A move is durable only when its folder is synced too. `clippy.toml` bans [`std::fs::rename`] elsewhere, so that no marker is
//! moved without that.

pub mod frame;

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

/// Writes `bytes` to a file next to `path` with the extension `tmp`, syncs that file, and moves it to `path`.
///
/// Files whose names differ only in the extension must not be written at the same time.
///
/// A reader finds the old content or the new one. After success the content survives a power failure. After an error the file at
/// `path` is unchanged, unless only the sync of the folder failed.
///
/// # Errors
/// Error of the file system, for example if the disk is full.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("marker");
/// durable::write(&path, b"begun")?;
/// assert_eq!(std::fs::read(&path)?, b"begun");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("tmp");
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written {
        // An incomplete draft would only take space on a full disk.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    rename(draft, path)
}

/// Moves a file or folder within one file system, and syncs the folders of both names.
///
/// The content of a moved file must have been synced before.
///
/// # Errors
/// Error of the file system.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    #[expect(clippy::disallowed_methods, reason = "the folders are synced below")]
    fs::rename(from, to)?;
    sync_folder(folder(to))?;
    if folder(from) != folder(to) {
        sync_folder(folder(from))?;
    }
    Ok(())
}

/// Makes the names in a folder durable: files that were created, moved or removed there.
///
/// # Errors
/// Error of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Returns the folder of a path; `.` for a name alone.
pub fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_draft() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("marker");
        write(&path, b"old").unwrap();
        // A folder in the place of the draft makes every write fail.
        fs::create_dir(home.path().join("marker.tmp")).unwrap();
        assert!(write(&path, b"new").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn a_name_without_a_folder_lies_in_the_current_one() {
        assert_eq!(folder(Path::new("marker")), Path::new("."));
        assert_eq!(folder(Path::new("a/marker")), Path::new("a"));
    }
}
