//! The processes that a run started last, kept in `processes.json`: [`ProcessList`].
//!
//! A `minuet up` that was killed cannot wait for its roles, which stop by themselves when they notice its end. The next start finds them in
//! the list and waits.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use service::process;

/// Time in which left-over processes may end by themselves before they are killed.
const TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);

/// A process that was started for the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedProcess {
    /// Name, e.g. `actor-1`.
    pub name: String,
    /// Process number. The operating system reuses it after the process's end.
    pub pid: u32,
    /// Time of the start, in clock ticks since boot; together with the number it identifies a process.
    pub started_at: u64,
}

impl ListedProcess {
    fn is_running(&self) -> bool {
        process::started_at(self.pid) == Some(self.started_at)
    }
}

/// The processes of a run, and the file that lists them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ProcessList {
    #[serde(skip)]
    path: PathBuf,
    /// Identifier of this boot of the machine: numbers and ticks start anew with the next one.
    boot: String,
    /// Device and inode of the run's folder. They differ in a copy of the folder, whose processes are those of the other folder.
    folder: (u64, u64),
    processes: Vec<ListedProcess>,
    /// Processes in a list that was copied with its folder.
    #[serde(skip)]
    strangers: Vec<ListedProcess>,
    /// Reason why the file cannot be read.
    #[serde(skip)]
    fault: Option<String>,
}

impl ProcessList {
    /// Reads the list in the run's folder. A missing or unreadable file ([`Self::fault`]) is an empty list, and so is the copy of another
    /// folder's list.
    pub fn open(run: &Path) -> Self {
        let path = run.join("processes.json");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim().to_owned();
        let written = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.to_string()),
        };
        let fault = written.as_ref().err().cloned();
        let written: Option<Self> = written.ok();
        let folder = fs::metadata(run).map_or((0, 0), |folder| (folder.dev(), folder.ino()));
        let mut list = written.filter(|written| written.boot == boot).unwrap_or_default();
        if list.folder != folder {
            list.strangers = std::mem::take(&mut list.processes);
            list.strangers.retain(ListedProcess::is_running);
        }
        Self {
            path,
            boot,
            folder,
            fault,
            ..list
        }
    }

    /// Reason why the file cannot be read; the processes of an earlier start are not known then.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Returns the running processes of the folder of which this one is a copy.
    pub fn strangers(&self) -> &[ListedProcess] {
        &self.strangers
    }

    /// Waits until the listed processes have ended, and kills those that take too long. Calls `waiting` once for each.
    pub async fn wait_for_left_overs(&mut self, mut waiting: impl FnMut(&ListedProcess)) {
        self.processes.retain(ListedProcess::is_running);
        self.processes.iter().for_each(&mut waiting);
        let deadline = Instant::now() + TIMEOUT;
        while !self.processes.is_empty() {
            if Instant::now() >= deadline {
                self.processes.iter().for_each(kill);
            }
            tokio::time::sleep(POLL).await;
            self.processes.retain(ListedProcess::is_running);
        }
    }

    /// Adds a process. It replaces an earlier one with the same name.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn started(&mut self, name: &str, pid: u32) -> io::Result<()> {
        self.processes.retain(|known| known.name != name);
        let known = process::started_at(pid).map(|started_at| ListedProcess {
            name: name.into(),
            pid,
            started_at,
        });
        self.processes.extend(known);
        self.write()
    }

    /// Empties the list after all processes have ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn all_ended(&mut self) -> io::Result<()> {
        self.processes.clear();
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        durable::write(&self.path, &serde_json::to_vec_pretty(self)?)
    }
}

fn kill(known: &ListedProcess) {
    let pid = i32::try_from(known.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid.filter(|_| known.is_running()) {
        // An error means that it has ended in between.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn left_over_processes_are_waited_for_and_others_with_their_number_are_not() {
        let run = tempfile::tempdir().unwrap();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut first = ProcessList::open(run.path());
        first.started("actor-1", child.id()).unwrap();
        // A process with that number that started at another time is not the run's.
        first.processes.push(ListedProcess {
            name: "learner".into(),
            pid: std::process::id(),
            started_at: 1,
        });
        first.write().unwrap();

        let mut second = ProcessList::open(run.path());
        assert_eq!(second.processes.len(), 2);
        let mut waited_for = Vec::new();
        let waiting = second.wait_for_left_overs(|known| waited_for.push(known.name.clone()));
        let ending = async {
            tokio::time::sleep(POLL / 2).await;
            child.kill().unwrap();
            child.wait().unwrap();
        };
        tokio::join!(waiting, ending);
        assert_eq!(waited_for, ["actor-1"]);
    }

    #[tokio::test]
    async fn processes_of_a_folder_are_left_alone_by_its_copy() {
        let (run, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut list = ProcessList::open(run.path());
        list.started("actor-1", std::process::id()).unwrap();
        fs::copy(
            run.path().join("processes.json"),
            copy.path().join("processes.json"),
        )
        .unwrap();
        let mut copied = ProcessList::open(copy.path());
        assert_eq!(copied.strangers(), list.processes);
        // Returns at once, and would otherwise kill this process.
        copied.wait_for_left_overs(|known| panic!("{known:?}")).await;
        copied.started("actor-1", std::process::id()).unwrap();
        assert_eq!(ProcessList::open(copy.path()).processes.len(), 1);
        assert_eq!(ProcessList::open(run.path()).strangers(), []);
    }

    #[test]
    fn processes_of_another_boot_and_a_damaged_file_are_ignored() {
        let run = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let mut list = ProcessList::open(run.path());
        list.started("actor-1", own).unwrap();
        assert_eq!(ProcessList::open(run.path()).processes.len(), 1);
        list.started("actor-1", own).unwrap();
        assert_eq!(ProcessList::open(run.path()).processes.len(), 1);
        list.boot = "another".into();
        list.write().unwrap();
        assert!(ProcessList::open(run.path()).processes.is_empty());
        assert_eq!(ProcessList::open(run.path()).fault(), None);
        fs::write(run.path().join("processes.json"), "{").unwrap();
        let damaged = ProcessList::open(run.path());
        assert!(damaged.processes.is_empty() && damaged.fault().is_some());
    }
}
