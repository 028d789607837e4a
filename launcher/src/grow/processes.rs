//! The processes of `minuet grow`: [`GrowProcesses`].

use std::path::Path;

use config::{Override, RunConfig};
use service::role::Role;
use tokio::sync::mpsc;

use super::LINE;
use crate::{
    event::Event,
    plan::{self, Plan},
    processes::{groups::ProcessGroups, list::ProcessList},
    run::{addresses::Addresses, folder::RunFolder},
};

/// Events that may wait to be read.
const EVENTS: usize = 64;
const LEARNER: &str = "learner-grown";
/// Checkpoints kept of the larger network if the run keeps all of its own.
const KEEP: u64 = 20;

/// The second learner, and the replay store if the run is not at work. Dropping it kills them.
pub struct GrowProcesses {
    /// The run's lock, if the run is not at work: `minuet up` must not start a second store.
    run: Option<RunFolder>,
    groups: ProcessGroups,
    events: mpsc::Receiver<Event>,
}

impl GrowProcesses {
    /// Starts the processes. `folder` is the second learner's, `settings` are those of the larger network.
    ///
    /// # Errors
    /// The run's folder cannot be used, or a binary is missing.
    pub fn start(
        run: &Path,
        folder: &Path,
        config: &RunConfig,
        settings: &[Override],
        binaries: &Path,
    ) -> anyhow::Result<Self> {
        let mut processes = Vec::new();
        let (held, replay) = match Addresses::of_running(run) {
            Some(addresses) => (None, addresses.replay),
            None => {
                let held = RunFolder::open(run, None, &[])?;
                let plan = Plan::new(&held, &[], 0)?;
                let stores = plan.processes.into_iter();
                processes.extend(stores.filter(|process| process.role == Role::ReplayStore));
                (Some(held), plan.config.replay.address)
            }
        };
        let text = |text: &str| toml::Value::String(text.into()).to_string();
        let mut set = vec![
            Override::new("replay.address", text(&replay))?,
            Override::new("learner.folder", text(&folder.to_string_lossy()))?,
            Override::new("checkpoints.line", text(LINE))?,
            Override::new("learner.metrics", text(""))?,
            Override::new("learner.health", text(""))?,
            // The replay store keeps these bounds; a learner only compares them with its pace.
            Override::new("replay.max_uses", "0.0")?,
            Override::new("replay.min_uses", "0.0")?,
        ];
        if config.checkpoints.keep == 0 {
            set.push(Override::new("checkpoints.keep", KEEP)?);
        }
        set.extend(settings.iter().cloned());
        processes.push(plan::second_learner(LEARNER, run, &set));
        let (send, events) = mpsc::channel(EVENTS);
        // A list of its own: the run's file belongs to `minuet up`.
        let list = ProcessList::open(folder);
        let groups = ProcessGroups::start(&processes, run, binaries, list, &send)?;
        Ok(Self {
            run: held,
            groups,
            events,
        })
    }

    /// True if `minuet up` is at work on the run.
    pub fn is_beside(&self) -> bool {
        self.run.is_none()
    }

    /// Waits for the next event of a process.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Asks the learner to publish its state and to end, and waits for that.
    pub async fn stop_learner(&mut self) {
        self.groups.stop(&[Role::Learner]).await;
    }

    /// Stops the replay store, if this command has started one.
    pub async fn stop_store(mut self) {
        self.groups.stop(&[Role::ReplayStore]).await;
    }
}
