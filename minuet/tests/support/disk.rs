//! A small file system in memory, if this process may mount one.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A file system in memory, unmounted when dropped.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a file system of `mib` MiB; `None` if mounting is not permitted.
    pub fn mount(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(folder.path())
            .output();
        let is_mounted = mounted.is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self(folder))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Fills the file system.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.filler()).unwrap();
        for size in [64 << 10, 4 << 10, 1] {
            let block = vec![0; size];
            while file.write_all(&block).is_ok() {}
        }
    }

    /// Deletes the file of [`SmallDisk::fill`].
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
    }
}
