//! Addresses of a run's services, in a file in the run's folder: other commands find the services there.

use std::{
    fs::{self, File, TryLockError},
    io,
    net::SocketAddr,
    path::Path,
};

use serde::{Deserialize, Serialize};
use service::role::Role;

use crate::{moment, plan::Plan};

const FILE: &str = "addresses.json";
const LOCK: &str = "lock";

/// Addresses of a run's services, as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// The inference server.
    pub inference: String,
    /// The replay store.
    pub replay: String,
    /// The processes that have metrics pages.
    pub members: Vec<Member>,
    /// Time at which the run was started, in milliseconds since the Unix epoch.
    pub started_at_ms: u64,
}

/// A process of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Name, e.g. `actor-1`.
    pub name: String,
    /// Role.
    pub role: Role,
    /// Address of the metrics page. `None`: the process is not found.
    pub metrics: Option<SocketAddr>,
}

impl Addresses {
    /// Returns the addresses of a planned run, which is started now.
    pub fn of_plan(plan: &Plan) -> Self {
        let mut members = plan.members();
        members.retain(|member| member.metrics.is_some());
        Self {
            inference: plan.config.inference.address.clone(),
            replay: plan.config.replay.address.clone(),
            members,
            started_at_ms: moment::now(),
        }
    }

    /// Writes the addresses into the run's folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, run: &Path) -> io::Result<()> {
        durable::write(&run.join(FILE), serde_json::to_string(self)?.as_bytes())
    }

    /// Reads the addresses of the run in this folder; `None` if the run is not at work.
    pub fn of_running(run: &Path) -> Option<Self> {
        let read = || serde_json::from_slice(&fs::read(run.join(FILE)).ok()?).ok();
        is_at_work(run).then(read).flatten()
    }
}

/// True if a `minuet up` works in this folder, which its lock tells: from before it starts the processes until after their end.
pub fn is_at_work(run: &Path) -> bool {
    // A lock taken here is released when the file is closed, a moment later.
    File::open(run.join(LOCK))
        .is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
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
        assert!(is_at_work(parent.path()));
        let addresses = Addresses {
            inference: "127.0.0.1:1".into(),
            replay: "127.0.0.1:2".into(),
            members: vec![Member {
                name: "actor-1".into(),
                role: Role::Actor,
                metrics: Some(([127, 0, 0, 1], 3).into()),
            }],
            started_at_ms: 4,
        };
        addresses.write(folder.path()).unwrap();
        assert_eq!(Addresses::of_running(parent.path()), Some(addresses));
        drop(folder);
        assert_eq!(Addresses::of_running(parent.path()), None);
    }
}
