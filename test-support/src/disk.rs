//! A file system of a few MiB, for tests of a full disk: [`SmallDisk`].

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

/// Set in the process that runs one test again in a mount namespace of its own.
const IN_NAMESPACE: &str = "MINUET_IN_NAMESPACE";

/// A tmpfs in a temporary folder. Dropping it unmounts it.
#[derive(Debug)]
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a disk of `mib` MiB.
    ///
    /// A user who may not mount anything may do so in a user and mount namespace. Then this function runs the calling test once
    /// more in such a namespace, and returns `None` after that run has passed: the caller returns.
    ///
    /// # Panics
    /// If the run in the namespace fails, or if this system has no such namespaces.
    #[must_use]
    pub fn mount(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(folder.path())
            .output()
            .expect("there is a program `mount`");
        if mounted.status.success() {
            return Some(Self(folder));
        }
        let error = String::from_utf8_lossy(&mounted.stderr).into_owned();
        assert!(
            std::env::var_os(IN_NAMESPACE).is_none(),
            "no tmpfs can be mounted, not even in a namespace: {error}"
        );
        repeat_in_namespace(&error);
        None
    }

    /// Root of the disk.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the disk to the last byte with one file.
    ///
    /// # Panics
    /// If that file cannot be created.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.filler()).expect("a disk with free space takes a file");
        for size in [64 << 10, 4 << 10, 1] {
            let block = vec![0; size];
            while file.write_all(&block).is_ok() {}
        }
    }

    /// Removes the file of [`fill`](Self::fill).
    ///
    /// # Panics
    /// If the disk was not filled.
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).expect("the disk was filled before");
    }

    /// Changes the size of the disk to `mib` MiB.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn resize(&self, mib: u32) {
        let resized = Command::new("mount")
            .args(["-o", &format!("remount,size={mib}m")])
            .arg(self.path())
            .status();
        assert!(
            resized.is_ok_and(|status| status.success()),
            "the disk cannot be resized"
        );
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).output();
    }
}

/// Runs the calling test again, alone, as root of a user namespace.
fn repeat_in_namespace(error: &str) {
    let test = thread::current();
    let test = test.name().filter(|name| *name != "main").unwrap_or_else(|| {
        panic!(
            "no tmpfs can be mounted ({error}), and the test's name is unknown: run without --test-threads=1"
        )
    });
    let program = std::env::current_exe().expect("a test knows its program");
    let run = Command::new("unshare")
        .args(["--map-root-user", "--mount"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(IN_NAMESPACE, "1")
        .output();
    let run = run
        .unwrap_or_else(|problem| panic!("no tmpfs can be mounted ({error}), and unshare fails: {problem}"));
    let report = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && report.contains("1 passed"),
        "no tmpfs can be mounted here ({error}); in a namespace the test failed:\n{report}{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
