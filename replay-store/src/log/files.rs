//! The file system behind the log and the ledger. It is an interface, so that tests can replace it by a disk that loses power, fails or
//! is full.

use std::{
    fmt::Debug,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use crate::error::VolumeError;

/// A lock on a file. Dropping it releases the lock.
pub type LockGuard = Box<dyn Debug + Send + Sync>;

/// A file that is open for reading and writing.
pub trait OpenFile: Debug + Send + Sync {
    /// Reads into `bytes` from `offset` on. Returns the number of bytes read; 0 at the end of the file.
    ///
    /// # Errors
    /// The error of the file system.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`. The write is durable only after [`OpenFile::sync`].
    ///
    /// # Errors
    /// The error of the file system. Any part of `bytes` may have been written then.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Truncates the file to `length` bytes, or extends it with zeros.
    ///
    /// # Errors
    /// The error of the file system.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The error of the file system.
    fn length(&self) -> io::Result<u64>;

    /// Makes all earlier writes and the length durable.
    ///
    /// # Errors
    /// The error of the file system. Writes since the last successful sync may be lost then, even if a later sync succeeds.
    fn sync(&self) -> io::Result<()>;

    /// Returns the bytes from `begin` up to `end`; fewer if the file ends before.
    ///
    /// # Errors
    /// The error of the file system.
    fn read_range(&self, begin: u64, end: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(end.saturating_sub(begin)).unwrap_or(usize::MAX)];
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match self.read_at(rest, begin + at as u64)? {
                0 => break,
                read => at += read,
            }
        }
        bytes.truncate(at);
        Ok(bytes)
    }
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderEntry {
    /// Full path.
    pub path: PathBuf,
    /// True if the entry is a folder.
    pub is_folder: bool,
}

/// A file system.
pub trait Files: Debug + Send + Sync {
    /// Opens a file. If the file does not exist and `create` is true, creates it empty.
    ///
    /// # Errors
    /// The error of the file system.
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file for reading only.
    ///
    /// # Errors
    /// The error of the file system.
    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        self.open(path, false)
    }

    /// Takes a shared lock on an existing file: other readers can lock it too, but [`Files::lock`] cannot lock it. Returns `None` if
    /// another process holds the exclusive lock.
    ///
    /// # Errors
    /// The error of the file system.
    fn lock_to_read(&self, path: &Path) -> io::Result<Option<LockGuard>> {
        self.lock(path)
    }

    /// Locks a file exclusively, after creating it if it does not exist. Returns `None` if another process has locked it.
    ///
    /// # Errors
    /// The error of the file system.
    fn lock(&self, path: &Path) -> io::Result<Option<LockGuard>>;

    /// Creates a folder and all folders above it that do not exist.
    ///
    /// # Errors
    /// The error of the file system.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Returns the entries of a folder, sorted by name.
    ///
    /// # Errors
    /// The error of the file system.
    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>>;

    /// True if there is a file or folder at `path`.
    fn exists(&self, path: &Path) -> bool;

    /// Renames a file or folder. Replaces an existing file with the new name.
    ///
    /// # Errors
    /// The error of the file system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The error of the file system.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder and its contents.
    ///
    /// # Errors
    /// The error of the file system.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// Makes the creations, renames and removals of names in a folder durable.
    ///
    /// # Errors
    /// The error of the file system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Returns the contents of a file.
    ///
    /// # Errors
    /// The error of the file system.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open_to_read(path)?;
        file.read_range(0, file.length()?)
    }

    /// Replaces a file atomically: a reader sees the old contents or the new ones, even after a crash.
    ///
    /// # Errors
    /// The error of the file system.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = path.with_extension("new");
        let file = self.open(&temporary, true)?;
        file.set_len(0)?;
        file.write_at(bytes, 0)?;
        file.sync()?;
        self.rename(&temporary, path)?;
        self.sync_folder(path.parent().unwrap_or(Path::new(".")))
    }
}

/// Converts a file system's error to that of a volume.
pub fn volume_error(error: io::Error) -> VolumeError {
    if is_full(&error) {
        VolumeError::Full
    } else if lacks_descriptor(&error) {
        VolumeError::NoDescriptor
    } else {
        VolumeError::Broken(error.to_string())
    }
}

/// True if the error says that the disk is full. Nothing is broken then, and a later attempt may succeed.
pub fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// True if the error says that the process or the system has no file descriptor left.
pub fn lacks_descriptor(error: &io::Error) -> bool {
    let limits = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| limits.contains(&code))
}

/// Returns `file` as a guard if `locked` says that its lock was taken; `None` if another process holds the lock.
fn held(file: File, locked: Result<(), TryLockError>) -> io::Result<Option<LockGuard>> {
    match locked {
        Ok(()) => Ok(Some(Box::new(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real;

impl OpenFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Files for Real {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn OpenFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(create).truncate(false);
        Ok(Box::new(options.open(path)?))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<LockGuard>> {
        let file = File::create(path)?;
        let locked = file.try_lock();
        held(file, locked)
    }

    fn lock_to_read(&self, path: &Path) -> io::Result<Option<LockGuard>> {
        let file = File::open(path)?;
        let locked = file.try_lock_shared();
        held(file, locked)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        let mut entries = fs::read_dir(folder)?
            .map(|entry| {
                let entry = entry?;
                Ok(FolderEntry {
                    path: entry.path(),
                    is_folder: entry.file_type()?.is_dir(),
                })
            })
            .collect::<io::Result<Vec<_>>>()?;
        entries.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        #[expect(
            clippy::disallowed_methods,
            reason = "callers sync the folder: the simulated disk checks that"
        )]
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir_all(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}
