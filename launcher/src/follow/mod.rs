//! [`Follower`]: the record of a run whose roles run elsewhere, e.g. in containers.
//!
//! A run on this machine has a folder in which `minuet up` records its figures. A run in containers has none, and the roles' files lie on
//! other volumes. A follower keeps a folder of the same form: it looks at the metrics pages once a second and asks the services by their
//! addresses in `run.toml`. All that reads a run's folder then works for such a run too.
//!
//! | module | contents |
//! |---|---|
//! | [`hosts`] | the processes of each role, by the name of the role |
//! | [`curves`] | losses over the steps of training |
//! | [`prometheus`] | what Prometheus recorded before the follower was started |

mod curves;
mod hosts;
pub mod prometheus;

use std::{path::Path, time::Duration};

use anyhow::Context as _;
use checkpoints::{BEST, LATEST, Repository};
use config::{Override, RunConfig};
use futures::{StreamExt as _, stream::BoxStream};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::{curves::Curves, hosts::Hosts, prometheus::Prometheus};
use crate::{
    event::Event,
    moment,
    run::{addresses::Addresses, folder::RunFolder},
    up::{journal::Journal, session::Session},
    watch::{Observation, Observer},
};

/// Interval at which the processes are observed.
const INTERVAL: Duration = Duration::from_secs(1);
/// Observations from one look-up of the names to the next one.
const OBSERVATIONS_PER_LOOK_UP: u32 = 5;

/// Keeps the record of a run whose roles run elsewhere.
#[derive(Debug)]
pub struct Follower {
    folder: RunFolder,
    config: RunConfig,
    hosts: Hosts,
    journal: Journal,
    curves: Curves,
    started_at_ms: u64,
}

impl Follower {
    /// Makes or continues the record in `folder` of the run that `file` configures, with `overrides`. Curves begin with what
    /// `prometheus` has, or else with the first observation.
    ///
    /// # Errors
    /// The configuration cannot be used, or the folder is that of another run.
    pub fn open(
        folder: &Path,
        file: &Path,
        overrides: &[Override],
        prometheus: Option<Prometheus>,
    ) -> anyhow::Result<Self> {
        let folder = RunFolder::follow(folder, file, overrides)?;
        let config = folder.load(&[])?;
        let cannot_use = || format!("cannot use {}", folder.path().display());
        Ok(Self {
            hosts: Hosts::of(&config).with_context(cannot_use)?,
            journal: Journal::open(folder.path()).with_context(cannot_use)?,
            curves: Curves::open(folder.path(), prometheus).with_context(cannot_use)?,
            config,
            folder,
            started_at_ms: moment::now(),
        })
    }

    /// Keeps the record until `ending` is cancelled.
    ///
    /// # Errors
    /// An address of the services is malformed, or the store of checkpoints cannot be opened.
    pub async fn run(mut self, ending: CancellationToken) -> anyhow::Result<()> {
        let repository = Repository::open(&self.config.checkpoints.store)?;
        let poll = Duration::from_millis(self.config.checkpoints.poll_ms);
        let session = Session::new(self.config.clone(), &repository).await;
        let published = repository.watch(LATEST, poll);
        let promoted = repository.watch(BEST, poll);
        let work = self.work(session, published, promoted);
        tokio::select! {
            ended = work => ended,
            () = ending.cancelled() => Ok(()),
        }
    }

    async fn work(
        &mut self,
        mut session: Session,
        mut published: BoxStream<'static, checkpoints::Manifest>,
        mut promoted: BoxStream<'static, checkpoints::Manifest>,
    ) -> anyhow::Result<()> {
        let mut observer = Observer::new(&self.config, Vec::new())?;
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut observations = 0;
        loop {
            tokio::select! {
                Some(manifest) = published.next() => {
                    self.note(session.published(manifest));
                }
                Some(manifest) = promoted.next() => {
                    self.note(session.promoted(&manifest));
                }
                _ = ticks.tick() => {
                    if observations % OBSERVATIONS_PER_LOOK_UP == 0 && self.hosts.look_up().await {
                        observer.watch(self.hosts.members());
                        self.write_addresses()?;
                    }
                    observations += 1;
                    let observation = observer.observe_all().await;
                    self.record(&mut session, &observation).await;
                }
            }
        }
    }

    async fn record(&mut self, session: &mut Session, observation: &Observation) {
        let (events, summary) = session.observe(observation);
        for event in events {
            self.note(Some(event));
        }
        if let Some(Event::Warning { text }) = self.journal.summary(&summary) {
            tracing::warn!("{text}");
        }
        self.curves.record(observation).await;
    }

    fn note(&mut self, event: Option<Event>) {
        let warning = event.and_then(|event| self.journal.event(&event));
        if let Some(Event::Warning { text }) = warning {
            tracing::warn!("{text}");
        }
    }

    fn write_addresses(&self) -> anyhow::Result<()> {
        let addresses = Addresses {
            inference: self.config.inference.address.clone(),
            replay: self.config.replay.address.clone(),
            members: self.hosts.members().to_vec(),
            started_at_ms: self.started_at_ms,
        };
        addresses
            .write(self.folder.path())
            .context("cannot write the run's addresses")
    }
}
