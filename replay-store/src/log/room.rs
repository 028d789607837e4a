//! Free disk space. A store refuses games temporarily before its disk is full or its own limit is reached, because a full disk interrupts
//! a commit, which must then be undone.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use service::log_throttle::LogThrottle;

/// Time for which a measurement is valid.
const FRESH: Duration = Duration::from_millis(250);
/// Number of bytes written after which a measurement is no longer valid.
const FRESH_BYTES: u64 = 4 << 20;

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
pub struct FileSystem(pub PathBuf);

impl Probe for FileSystem {
    fn space(&mut self) -> io::Result<Space> {
        let file_system = rustix::fs::statvfs(&self.0)?;
        Ok(Space {
            used: taken(&self.0)?,
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
    unmeasured: LogThrottle,
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
            unmeasured: LogThrottle::default(),
        }
    }

    /// Returns an error if no more games may be written now. `bytes` is the length of the next write, which brings forward the next
    /// measurement. If the disk could never be measured, the write is permitted.
    ///
    /// # Errors
    /// The reason, with the setting that it depends on. A later call may succeed.
    pub fn check(&mut self, bytes: u64) -> Result<(), String> {
        self.since += bytes;
        let Some(space) = self.measured() else {
            return Ok(());
        };
        let mib = |bytes: u64| bytes >> 20;
        if space.used > self.limit {
            return Err(format!(
                "the store takes {} MiB of the {} MiB it may (replay.max_disk_mib)",
                mib(space.used),
                mib(self.limit)
            ));
        }
        if space.free < self.needed {
            return Err(format!(
                "{} MiB are free on the store's disk, {} MiB must stay (replay.min_free_mib)",
                mib(space.free),
                mib(self.needed)
            ));
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
                if self.unmeasured.allows() {
                    tracing::warn!(%error, "cannot measure the disk");
                }
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
        let room = Room::new(Box::new(FileSystem("/".into())), 100, 10);
        let allowed = |used, free| room.allowed(Space { used, free });
        assert_eq!(allowed(20, 1000), 100);
        assert_eq!(allowed(20, 60), 70);
        assert_eq!(allowed(2, 3), 0);
    }
}
