//! [`Draft`]: a file that gets the name that a person chose once it is complete. Replaces the partial files of `games export`, which had names of
//! their own in the folder, and writing in place in `play`.

use std::{
    fs::{self, Permissions},
    io::{self, BufWriter, Write},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

/// A file that is being written. Dropping it deletes what was written.
#[derive(Debug)]
pub struct Draft {
    to: PathBuf,
    out: BufWriter<NamedTempFile>,
}

impl Draft {
    /// Begins to write the file `to`, which may exist. A link is followed.
    ///
    /// # Errors
    /// `to` is a folder, a pipe or a device; or the error of the file system.
    pub fn of(to: &Path) -> io::Result<Self> {
        let to = match fs::metadata(to) {
            Ok(found) if found.is_file() => fs::canonicalize(to)?,
            Ok(_) => return Err(io::Error::other("not a regular file; name another one")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => to.to_owned(),
            Err(error) => return Err(error),
        };
        let file = tempfile::Builder::new()
            .prefix(".minuet-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(durable::folder(&to))?;
        Ok(Self {
            to,
            out: BufWriter::new(file),
        })
    }

    /// Makes the file durable, and gives it its name.
    ///
    /// # Errors
    /// Error of the file system. What had the name before is unchanged then, unless only the sync of the folder failed.
    pub fn complete(self) -> io::Result<()> {
        let file = self.out.into_inner().map_err(|error| error.into_error())?;
        file.as_file().sync_all()?;
        file.persist(&self.to).map_err(|error| error.error)?;
        durable::sync_folder(durable::folder(&self.to))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
