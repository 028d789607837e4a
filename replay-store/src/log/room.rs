//! Room on the disk: games are refused before the disk is full, for a database that runs out of it in
//! the middle of a write is lost to this process.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Time for which a measurement is valid.
const FRESH: Duration = Duration::from_millis(250);
/// Bytes written after which it is taken again.
const FRESH_BYTES: u64 = 4 << 20;

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// The store has reached its own limit.
    #[error("the store takes {used} MiB of the {limit} MiB it may (replay.max_disk_mib)")]
    Limit {
        /// MiB in use.
        used: u64,
        /// MiB allowed.
        limit: u64,
    },
    /// The file system is nearly full.
    #[error("{free} MiB are free on the store's disk, {needed} MiB must stay (replay.min_free_mib)")]
    Disk {
        /// MiB free.
        free: u64,
        /// MiB that must stay free.
        needed: u64,
    },
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes of disk that the store takes.
    pub used: u64,
    /// Bytes free on its file system.
    pub free: u64,
}

/// Measures the space of a folder.
pub trait Probe: Send {
    /// Bytes taken and bytes free.
    ///
    /// # Errors
    /// What the file system reports.
    fn space(&mut self) -> io::Result<Space>;
}

/// The file system itself.
#[derive(Debug)]
pub struct FileSystem {
    folder: PathBuf,
}

impl FileSystem {
    /// For the store in `folder`.
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

/// Bytes of disk below `folder`, as the file system allots them.
///
/// # Errors
/// What the file system reports; what vanishes in the meantime counts nothing.
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

/// Says whether there is room, measuring only now and then.
pub struct Room {
    probe: Box<dyn Probe>,
    limit: u64,
    needed: u64,
    last: Option<(Instant, Space)>,
    since: u64,
}

impl Room {
    /// At most `limit` bytes for the store, at least `needed` bytes left free.
    pub fn new(probe: Box<dyn Probe>, limit: u64, needed: u64) -> Self {
        Self {
            probe,
            limit,
            needed,
            last: None,
            since: 0,
        }
    }

    /// Returns an error if `bytes` more bytes must not be written.
    ///
    /// # Errors
    /// [`NoRoom`]; asking again later may go well. Where the space cannot be measured there is room: the
    /// write itself will tell.
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

    /// Bytes that the store may come to take: its own limit, or less where the file system ends before.
    pub fn allowed(&self, space: Space) -> u64 {
        let until_full = (space.used + space.free).saturating_sub(self.needed);
        self.limit.min(until_full)
    }

    /// The space as last measured, measured again if that is old.
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

    /// Forgets the last measurement, after something was removed.
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
