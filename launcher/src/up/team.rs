//! The run's processes together: all started at once, stopped in the order in which work travels.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use service::role::Role;
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    census::Census,
    event::Event,
    folder::RunFolder,
    plan::Plan,
    supervise::{Place, supervise},
};

/// The processes with one role.
struct Group {
    role: Role,
    stop: CancellationToken,
    /// Each gives its name and whether it had to be killed.
    members: JoinSet<(String, bool)>,
}

/// The run's processes. Dropping it kills them.
pub struct Team {
    groups: Vec<Group>,
    census: Arc<Mutex<Census>>,
}

/// A role's binary that is not where it should be.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no {binary} in {folder}; build all binaries (make build), or name their folder with --binaries"
)]
pub struct Missing {
    binary: &'static str,
    folder: PathBuf,
}

impl Missing {
    /// Checks that a role's binary is there.
    ///
    /// # Errors
    /// [`Missing`].
    pub fn check(role: Role, binaries: &Path) -> Result<(), Self> {
        let binary = role.binary();
        if binaries.join(binary).is_file() {
            return Ok(());
        }
        Err(Self {
            binary,
            folder: binaries.into(),
        })
    }
}

impl Team {
    /// Starts every planned process; they wait for each other by themselves. Must be called within a runtime.
    ///
    /// # Errors
    /// [`Missing`] if a role's binary is not in `binaries`; then none is started.
    pub fn start(
        plan: &Plan,
        folder: &RunFolder,
        binaries: &Path,
        census: Census,
        events: &mpsc::Sender<Event>,
    ) -> Result<Self, Missing> {
        for member in &plan.members {
            Missing::check(member.role, binaries)?;
        }
        let census = Arc::new(Mutex::new(census));
        let mut groups: Vec<Group> = Vec::new();
        for member in &plan.members {
            let place = Place {
                binaries: binaries.into(),
                log: folder.log(&member.name),
                census: census.clone(),
                events: events.clone(),
            };
            let index = groups.iter().position(|group| group.role == member.role);
            let index = index.unwrap_or_else(|| {
                groups.push(Group {
                    role: member.role,
                    stop: CancellationToken::new(),
                    members: JoinSet::new(),
                });
                groups.len() - 1
            });
            if let Some(group) = groups.get_mut(index) {
                let (member, stop) = (member.clone(), group.stop.clone());
                group.members.spawn(async move {
                    let name = member.name.clone();
                    (name, supervise(member, place, stop).await)
                });
            }
        }
        Ok(Self { groups, census })
    }

    /// Asks the processes with these roles to end, and waits until they have. Gives the names of those that had
    /// to be killed.
    pub async fn stop(&mut self, roles: &[Role]) -> Vec<String> {
        let mut killed = Vec::new();
        let groups = self.groups.iter_mut().filter(|group| roles.contains(&group.role));
        let groups: Vec<&mut Group> = groups.collect();
        groups.iter().for_each(|group| group.stop.cancel());
        for group in groups {
            while let Some(ended) = group.members.join_next().await {
                killed.extend(ended.ok().filter(|(_, killed)| *killed).map(|(name, _)| name));
            }
        }
        killed
    }

    /// All have ended.
    pub async fn ended(self) -> std::io::Result<()> {
        self.census.lock().await.all_ended()
    }
}
