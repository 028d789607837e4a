//! [`Filesystem`]: the kind of file system that a folder lies on, such as ext4 or tmpfs. Data on a file system in
//! memory do not survive a power failure.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Magic numbers of file systems, as in statfs(2), and their names.
const NAMES: [(u32, &str); 9] = [
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
];
/// Names of the file systems that lie in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// The file system of a folder.
#[derive(Clone, Debug)]
pub struct Filesystem {
    /// Name, e.g. `ext4`. The magic number in hexadecimal if `NAMES` has no name for it.
    pub name: String,
    /// True if flushed data survive a power failure. False for file systems in memory.
    pub durable: bool,
}

impl Filesystem {
    /// Finds the file system of `folder`.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let found = rustix::fs::statfs(folder)?;
        let magic = found.f_type as u32;
        let known = NAMES.iter().find(|(number, _)| *number == magic);
        Ok(Self {
            name: known.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned()),
            durable: known.is_none_or(|(_, name)| !IN_MEMORY.contains(name)),
        })
    }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// The file is another kind of file, is larger, or cannot be read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Without this flag, opening a FIFO would wait for its writer.
    let nonblock = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_durable() {
        // Linux mounts a tmpfs on /dev/shm.
        let memory = Filesystem::of(Path::new("/dev/shm")).unwrap();
        assert_eq!((memory.name.as_str(), memory.durable), ("tmpfs", false));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(Filesystem::of(folder).unwrap().durable);
        assert!(Filesystem::of(Path::new("/nowhere")).is_err());
    }
}
