//! Free disk space. A store refuses games temporarily before its disk is full or its own limit is reached, because a full disk interrupts
//! a commit, which must then be undone.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Time for which a measurement is valid.
const FRESH: Duration = Duration::from_millis(250);
/// Number of bytes written after which a measurement is no longer valid.
const FRESH_BYTES: u64 = 4 << 20;

/// Reason why no more games may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The store has reached its own limit (`replay.max_disk_mib`).
    #[error("the store takes {used} MiB of the {limit} MiB it may (replay.max_disk_mib)")]
    Limit {
        /// Size of the store in MiB.
        used: u64,
        /// Largest size that is allowed, in MiB.
        limit: u64,
    },
    /// The file system has too little free space (`replay.min_free_mib`).
    #[error("{free} MiB are free on the store's disk, {needed} MiB must stay (replay.min_free_mib)")]
    Disk {
        /// Free space in MiB.
        free: u64,
        /// Space that must stay free, in MiB.
        needed: u64,
    },
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Number of bytes that the store takes on the disk.
    pub used: u64,
    /// Number of free bytes on the store's file system.
    pub free: u64,
}

/// Measures the space of a folder.
pub trait Probe: Send {
    /// Returns the size of the folder and the free space of its file system.
    ///
    /// # Errors
    /// The error of the file system.
    fn space(&mut self) -> io::Result<Space>;
}

/// Measures a folder on the operating system's file system.
#[derive(Debug)]
pub struct FileSystem {
    folder: PathBuf,
}

impl FileSystem {
    /// Returns a probe for the store in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.into(),
        }
    }
}

impl Probe for FileSystem {
    fn space(&mut self) -> io::Result<Space> {
        let file_system = rustix::fs::statvfs(&self.folder)?;
        Ok(Space {
            used: taken(&self.folder)?,
            free: file_system.f_bavail * file_system.f_frsize,
        })
    }
}

/// Returns the number of bytes that the file system has allocated below `folder`. Files and folders that disappear during the call are
/// not counted.
///
/// # Errors
/// The error of the file system.
pub fn taken(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => match taken(&entry.path()) {
                Ok(inside) => bytes += inside,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            },
            Ok(metadata) => bytes += metadata.blocks() * 512,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Checks whether games may be written. A measurement of the disk is used several times before the next one.
pub struct Room {
    probe: Box<dyn Probe>,
    limit: u64,
    needed: u64,
    last: Option<(Instant, Space)>,
    since: u64,
}

impl Room {
    /// Returns the check for a store that may take at most `limit` bytes on a disk of which `needed` bytes must stay free.
    pub fn new(probe: Box<dyn Probe>, limit: u64, needed: u64) -> Self {
        Self {
            probe,
            limit,
            needed,
            last: None,
            since: 0,
        }
    }

    /// Returns an error if no more games may be written now. `bytes` is the length of the next write, which brings forward the next
    /// measurement. If the disk could never be measured, the write is permitted.
    ///
    /// # Errors
    /// [`NoRoom`]. A later call may succeed.
    pub fn check(&mut self, bytes: u64) -> Result<(), NoRoom> {
        self.since += bytes;
        let Some(space) = self.measured() else {
            return Ok(());
        };
        const MIB: u64 = 1 << 20;
        if space.used > self.limit {
            return Err(NoRoom::Limit {
                used: space.used / MIB,
                limit: self.limit / MIB,
            });
        }
        if space.free < self.needed {
            return Err(NoRoom::Disk {
                free: space.free / MIB,
                needed: self.needed / MIB,
            });
        }
        Ok(())
    }

    /// Returns the number of bytes that the store may take in all: its own limit, or less if the file system has less space.
    pub fn allowed(&self, space: Space) -> u64 {
        let until_full = (space.used + space.free).saturating_sub(self.needed);
        self.limit.min(until_full)
    }

    /// Returns the last measurement, or a new one if that is no longer valid. If the disk cannot be measured, returns the last
    /// measurement; `None` if there is none.
    pub fn measured(&mut self) -> Option<Space> {
        let fresh = self
            .last
            .filter(|(at, _)| at.elapsed() < FRESH && self.since < FRESH_BYTES);
        if let Some((_, space)) = fresh {
            return Some(space);
        }
        match self.probe.space() {
            Ok(space) => {
                self.last = Some((Instant::now(), space));
                self.since = 0;
                Some(space)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot measure the disk");
                self.last.map(|(_, space)| space)
            }
        }
    }

    /// Discards the last measurement, because something was removed.
    pub fn changed(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_or_the_limit_ends_first() {
        let room = Room::new(Box::new(FileSystem::new(Path::new("/"))), 100, 10);
        let allowed = |used, free| room.allowed(Space { used, free });
        assert_eq!(allowed(20, 1000), 100);
        assert_eq!(allowed(20, 60), 70);
        assert_eq!(allowed(2, 3), 0);
    }
}
