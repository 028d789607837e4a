//! Which processes this run started last, written down so that the next start finds those that are still there:
//! a `minuet up` that was killed cannot wait for its roles, which stop by themselves when they notice.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use service::process;

use super::folder::write_whole;

/// Left-over processes get this long to finish by themselves before they are killed.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// A process that was started for the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The role process's name, e.g. `actor-1`.
    pub name: String,
    /// Its number, which the operating system uses again after its end.
    pub pid: u32,
    /// When it started, in clock ticks since boot; with the number this names one process.
    pub started_at: u64,
}

impl Known {
    fn is_running(&self) -> bool {
        process::started_at(self.pid) == Some(self.started_at)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Written {
    /// Names this boot of the machine: numbers and ticks begin again with the next.
    boot: String,
    processes: Vec<Known>,
}

/// The file of the run's processes.
#[derive(Debug)]
pub struct Census {
    path: PathBuf,
    boot: String,
    processes: Vec<Known>,
}

impl Census {
    /// Reads what the last start wrote into the run's folder. Nothing there, or nothing readable: no processes.
    pub fn open(run: &Path) -> Self {
        let path = run.join("processes.json");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .unwrap_or_default();
        let written: Written = fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let processes = if written.boot == boot {
            written.processes
        } else {
            Vec::new()
        };
        Self {
            path,
            boot,
            processes,
        }
    }

    /// Waits until the last start's processes are gone, and kills those that stay. `waiting` is told once for each.
    pub async fn wait_for_left_overs(&mut self, mut waiting: impl FnMut(&Known)) {
        self.processes.retain(Known::is_running);
        self.processes.iter().for_each(&mut waiting);
        let deadline = Instant::now() + PATIENCE;
        while !self.processes.is_empty() {
            if Instant::now() >= deadline {
                self.processes.iter().for_each(kill);
            }
            tokio::time::sleep(POLL).await;
            self.processes.retain(Known::is_running);
        }
    }

    /// A process was started; it takes the place of an earlier one of that name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn started(&mut self, name: &str, pid: u32) -> io::Result<()> {
        self.processes.retain(|known| known.name != name);
        let known = process::started_at(pid).map(|started_at| Known {
            name: name.into(),
            pid,
            started_at,
        });
        self.processes.extend(known);
        self.write()
    }

    /// All processes have ended.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn all_ended(&mut self) -> io::Result<()> {
        self.processes.clear();
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let written = Written {
            boot: self.boot.clone(),
            processes: self.processes.clone(),
        };
        write_whole(&self.path, &serde_json::to_vec_pretty(&written)?)
    }
}

fn kill(known: &Known) {
    let pid = i32::try_from(known.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid.filter(|_| known.is_running()) {
        // It may have ended in between; then there is nothing to do.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn left_overs_are_waited_for_and_strangers_are_not() {
        let run = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut first = Census::open(run.path());
        first.started("actor-1", child.id()).unwrap();
        // A process of that number that started at another time is somebody else's.
        first.processes.push(Known {
            name: "learner".into(),
            pid: std::process::id(),
            started_at: 1,
        });
        first.write().unwrap();

        let mut second = Census::open(run.path());
        assert_eq!(second.processes.len(), 2);
        let mut asked_for = Vec::new();
        let waiting = second.wait_for_left_overs(|known| asked_for.push(known.name.clone()));
        let ending = async {
            tokio::time::sleep(POLL / 2).await;
            child.kill().unwrap();
            child.wait().unwrap();
        };
        tokio::join!(waiting, ending);
        assert_eq!(asked_for, ["actor-1"]);
    }

    #[test]
    fn another_boots_processes_and_a_damaged_file_count_for_nothing() {
        let run = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let mut census = Census::open(run.path());
        census.started("actor-1", own).unwrap();
        assert_eq!(Census::open(run.path()).processes.len(), 1);
        census.started("actor-1", own).unwrap();
        assert_eq!(Census::open(run.path()).processes.len(), 1);
        census.boot = "another".into();
        census.write().unwrap();
        assert!(Census::open(run.path()).processes.is_empty());
        fs::write(run.path().join("processes.json"), "{").unwrap();
        assert!(Census::open(run.path()).processes.is_empty());
    }
}
