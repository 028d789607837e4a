//! A small file system of its own, where this process may mount one.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A disk in memory. Dropping it takes it away.
pub struct Small(tempfile::TempDir);

impl Small {
    /// With so much room; `None` where nothing may be mounted.
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

    /// Takes all room.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.filler()).unwrap();
        for size in [64 << 10, 4 << 10, 1] {
            let block = vec![0; size];
            while file.write_all(&block).is_ok() {}
        }
    }

    /// Gives it back.
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
    }
}
