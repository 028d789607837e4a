//! Where the roles of a running run are found: written into its folder, so that other commands can ask them.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::folder::write_whole;

const FILE: &str = "addresses.json";
const LOCK: &str = "lock";

/// Addresses (`host:port`) of a run's services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The inference server.
    pub inference: String,
    /// The replay store.
    pub replay: String,
}

impl Addresses {
    /// Writes them into the run's folder.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, run: &Path) -> io::Result<()> {
        write_whole(&run.join(FILE), serde_json::to_string(self)?.as_bytes())
    }

    /// The addresses of the run in this folder, if it is running: its lock is held then.
    pub fn of_running(run: &Path) -> Option<Self> {
        let lock = File::open(run.join(LOCK)).ok()?;
        // A lock that could be had is given back when the file is closed, a moment later.
        match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) => return None,
        }
        serde_json::from_slice(&fs::read(run.join(FILE)).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::folder::RunFolder;

    #[test]
    fn a_run_is_found_only_while_it_runs() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(parent.path(), None, &[]).unwrap();
        assert_eq!(Addresses::of_running(parent.path()), None);
        let addresses = Addresses {
            inference: "127.0.0.1:1".into(),
            replay: "127.0.0.1:2".into(),
        };
        addresses.write(folder.path()).unwrap();
        assert_eq!(Addresses::of_running(parent.path()), Some(addresses));
        drop(folder);
        assert_eq!(Addresses::of_running(parent.path()), None);
    }
}
