//! The processes of a run, in one group for each role: [`ProcessGroups`]. All start at once; groups stop one after the other.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use anyhow::ensure;
use service::role::Role;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    list::ProcessList,
    supervise::{ProcessContext, supervise},
};
use crate::{event::Event, plan::PlannedProcess, run::folder::log_file};

/// Events that may wait for the receiver; then supervisors wait.
const EVENTS: usize = 256;

/// The processes of one role.
#[derive(Default)]
struct Group {
    shutdown: CancellationToken,
    /// Each task returns the process's name and whether it had to be killed.
    members: JoinSet<(String, bool)>,
}

/// The running processes. Dropping this kills them.
pub struct ProcessGroups {
    groups: BTreeMap<Role, Group>,
    list: Arc<Mutex<ProcessList>>,
}

impl ProcessGroups {
    /// Starts every planned process and returns their events. The processes wait for each other by themselves. Must be called in a
    /// Tokio runtime.
    ///
    /// # Errors
    /// A role's binary is not in `binaries`; no process is started then.
    pub fn start(
        processes: &[PlannedProcess],
        run: &Path,
        binaries: &Path,
        list: ProcessList,
    ) -> anyhow::Result<(Self, mpsc::Receiver<Event>)> {
        for process in processes.iter().filter(|process| !process.is_hosted) {
            let binary = process.role.binary();
            ensure!(
                binaries.join(binary).is_file(),
                "there is no {binary} in {}; build all binaries with `make build`, or name their folder with --binaries or the \
                 environment variable MINUET_PROGRAMS",
                binaries.display()
            );
        }
        let (send, events) = mpsc::channel(EVENTS);
        let list = Arc::new(Mutex::new(list));
        let mut groups: BTreeMap<Role, Group> = BTreeMap::new();
        for process in processes {
            let context = ProcessContext {
                binaries: binaries.into(),
                log: log_file(run, &process.name),
                list: list.clone(),
                events: send.clone(),
            };
            let group = groups.entry(process.role).or_default();
            let (process, shutdown) = (process.clone(), group.shutdown.clone());
            group.members.spawn(async move {
                let name = process.name.clone();
                (name, supervise(process, context, shutdown).await)
            });
        }
        Ok((Self { groups, list }, events))
    }

    /// Asks the processes of these roles to end, and waits for that. Returns the names of those that had to be killed.
    pub async fn stop(&mut self, roles: &[Role]) -> Vec<String> {
        let mut killed = Vec::new();
        let groups = self.groups.iter_mut().filter(|(role, _)| roles.contains(role));
        let groups: Vec<&mut Group> = groups.map(|(_, group)| group).collect();
        groups.iter().for_each(|group| group.shutdown.cancel());
        for group in groups {
            while let Some(ended) = group.members.join_next().await {
                killed.extend(ended.ok().filter(|(_, killed)| *killed).map(|(name, _)| name));
            }
        }
        killed
    }

    /// Empties the list of processes after all have ended.
    pub async fn ended(self) -> std::io::Result<()> {
        self.list.lock().await.all_ended()
    }
}
