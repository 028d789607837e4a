//! Addresses of a run's services, in a file in the run's folder: other commands find the services there.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

use serde::{Deserialize, Serialize};

const FILE: &str = "addresses.json";
const LOCK: &str = "lock";

/// Addresses of a run's services, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The inference server.
    pub inference: String,
    /// The replay store.
    pub replay: String,
}

impl Addresses {
    /// Writes the addresses into the run's folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, run: &Path) -> io::Result<()> {
        durable::write(&run.join(FILE), serde_json::to_string(self)?.as_bytes())
    }

    /// Reads the addresses of the run in this folder; `None` if the run is not at work, which its lock tells.
    pub fn of_running(run: &Path) -> Option<Self> {
        let lock = File::open(run.join(LOCK)).ok()?;
        // A lock taken here is released when the file is closed, a moment later.
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
    use crate::run::folder::RunFolder;

    #[test]
    fn addresses_are_found_only_while_the_run_is_at_work() {
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
