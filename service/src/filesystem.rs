//! [`Filesystem`]: the kind of file system that a folder lies on, such as ext4 or tmpfs. Data on a file system in
//! memory do not survive a power failure. [`open_regular`] and [`open_below`]: files that other accounts may have made.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Component, Path},
};

use rustix::fs::{CWD, Mode, OFlags, openat};

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
    content(open_regular(path)?, most)
}

/// Reads a file that [`open_below`] opens, of at most `most` bytes.
///
/// # Errors
/// As [`open_below`] and [`read`].
pub fn read_below(folder: &Path, file: &Path, most: u64) -> io::Result<Vec<u8>> {
    content(open_below(folder, file)?, most)
}

fn content(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// Opens a regular file for reading. Anything else is refused at once: opening a pipe would wait for its writer.
///
/// # Errors
/// The error of the file system; [`io::ErrorKind::InvalidInput`] for a folder, a pipe or a device.
pub fn open_regular(file: &Path) -> io::Result<File> {
    regular(
        openat(
            CWD,
            file,
            OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
            Mode::empty(),
        )?
        .into(),
    )
}

/// Opens a regular file below `folder` for reading, where somebody else may have put links to files outside: no link below `folder` is
/// followed, and neither is one in place of `folder` itself.
///
/// # Errors
/// As [`open_regular`], and for a link, and for a path that leaves the folder.
pub fn open_below(folder: &Path, file: &Path) -> io::Result<File> {
    let inside = OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut opened = openat(CWD, folder, inside | OFlags::DIRECTORY, Mode::empty())?;
    let mut parts = file.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let kind = match parts.peek() {
            Some(_) => OFlags::DIRECTORY,
            None => OFlags::NONBLOCK | OFlags::NOCTTY,
        };
        opened = openat(&opened, name, inside | kind, Mode::empty())?;
    }
    regular(opened.into())
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn links_pipes_and_paths_that_leave_the_folder_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("run");
        fs::create_dir_all(run.join("up")).unwrap();
        fs::write(home.path().join("secret"), "secret").unwrap();
        fs::write(run.join("up/own"), "own").unwrap();
        symlink("../../secret", run.join("up/link")).unwrap();
        symlink("up", run.join("folder")).unwrap();
        symlink(&run, home.path().join("other")).unwrap();
        let pipe = run.join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(read_below(&run, Path::new("up/own"), 3).unwrap(), b"own");
        read_below(&run, Path::new("up/own"), 2).unwrap_err();
        for outside in [
            "up/link",
            "folder/own",
            "../secret",
            "up/../../secret",
            "pipe",
            "up",
            "",
        ] {
            open_below(&run, Path::new(outside)).unwrap_err();
        }
        open_below(&home.path().join("other"), Path::new("up/own")).unwrap_err();
        open_regular(&pipe).unwrap_err();
        open_regular(&run.join("folder/own")).unwrap();
    }

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
