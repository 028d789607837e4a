//! The replay store and the learner of a run, as processes: [`Roles`].

use std::{
    fs::{self, File, TryLockError},
    io,
    net::SocketAddr,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use checkpoints::{Repository, Version};
use config::{RunConfig, load, template};
use proto::v1::{Game, StatsRequest, replay_store_client::ReplayStoreClient};
use service::role::Role;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use crate::harness::{
    page,
    role::{RoleProcess, free_addresses},
};

/// Longest time until a process answers after its start.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// Longest time without a training step while steps are due.
const STEP_WITHIN: Duration = Duration::from_secs(600);
/// Longest time until the processes of an earlier start have ended.
const FREE_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Metric of the learner: number of training steps of the run.
const STEP: &str = "minuet_learner_step";

/// The running replay store and learner of a run.
pub struct Roles {
    config: RunConfig,
    runtime: Runtime,
    client: ReplayStoreClient<Channel>,
    repository: Repository,
    learner: RoleProcess,
    learner_page: SocketAddr,
    store: RoleProcess,
}

impl Roles {
    /// Writes `run.toml` into `folder`, and starts the processes on free ports.
    ///
    /// # Errors
    /// A process cannot be started, or is not ready in time.
    pub fn start(config: &RunConfig, folder: &Path) -> anyhow::Result<Self> {
        let mut config = config.clone();
        let free = free_addresses(3)?;
        let addresses = [
            &mut config.replay.address,
            &mut config.replay.metrics,
            &mut config.learner.metrics,
        ];
        for (address, free) in addresses.into_iter().zip(free) {
            *address = free.to_string();
        }
        let file = folder.join("run.toml");
        fs::write(&file, template(&config)).with_context(|| format!("cannot write {}", file.display()))?;
        // Loaded again, so that the paths are relative to the folder.
        let config = load(&file)?;
        for lock in [
            config.replay.folder.join("lock"),
            config.learner.folder.join("learner.lock"),
        ] {
            wait_until_free(&lock)?;
        }
        let runtime = Runtime::new()?;
        let start = |role| RoleProcess::start(role, ["--config".as_ref(), file.as_os_str()], true);
        let mut store = start(Role::ReplayStore)?;
        let channel = {
            let _inside = runtime.enter();
            service::connect::channel(&config.replay.address)?
        };
        let mut client = ReplayStoreClient::new(channel);
        store.wait_until(READY_WITHIN, || {
            Ok(runtime.block_on(client.stats(StatsRequest::default()))?)
        })?;
        let mut learner = start(Role::Learner)?;
        let learner_page = config.learner.metrics.parse()?;
        let repository = Repository::open(&config.checkpoints.store)?;
        learner.wait_until(READY_WITHIN, || {
            let latest = runtime.block_on(repository.label(&config.actor.model))?;
            latest.context("the learner has published no network")?;
            page(learner_page)?
                .sum(STEP)
                .context("the learner's page has no steps")
        })?;
        Ok(Self {
            config,
            runtime,
            client,
            repository,
            learner,
            learner_page,
            store,
        })
    }

    /// Returns the configuration with the addresses of the processes.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Stores games durably.
    ///
    /// # Errors
    /// The store refuses a game, or does not answer.
    pub fn store(&mut self, games: Vec<Game>) -> anyhow::Result<()> {
        let count = games.len();
        self.runtime.block_on(async {
            let mut acks = self.client.append(tokio_stream::iter(games)).await?.into_inner();
            for _ in 0..count {
                let ack = acks.message().await?;
                let ack = ack.context("the store ended before it had taken every game")?;
                let reason = &ack.refused;
                ensure!(reason.is_empty(), "the store refuses a game: {reason}");
            }
            Ok(())
        })
    }

    /// Waits until the learner has made every step that the stored positions allow, and has published the last checkpoint that
    /// is due. Returns its version and the number of steps.
    ///
    /// # Errors
    /// The learner ends, or makes no step for ten minutes.
    pub fn train(&mut self) -> anyhow::Result<(Version, u64)> {
        let stats = self.client.stats(StatsRequest::default());
        let stats = self.runtime.block_on(stats)?.into_inner();
        let learner = &self.config.learner;
        let samples = (learner.samples_per_position * stats.positions_inserted as f64) as u64;
        let due = if stats.window_positions < learner.min_positions {
            0
        } else {
            samples / learner.batch_size as u64
        };
        let due_checkpoint = learner.checkpoint_due(due);
        let (mut last, mut progress_at) = (None, Instant::now());
        loop {
            let step = page(self.learner_page)?.sum(STEP).unwrap_or(0.0) as u64;
            let latest = self.repository.label(&self.config.actor.model);
            let latest = self.runtime.block_on(latest)?;
            if let Some(latest) = &latest
                && step >= due
                && latest.step() >= due_checkpoint
            {
                return Ok((latest.clone(), step));
            }
            let now = (step, latest);
            if last.as_ref() != Some(&now) {
                (last, progress_at) = (Some(now), Instant::now());
            }
            if progress_at.elapsed() > STEP_WITHIN {
                bail!("the learner stays at step {step} of {due}; its log shows why");
            }
            self.learner.check()?;
            self.store.check()?;
            thread::sleep(POLL);
        }
    }

    /// Returns the processor time of the learner since its start, in seconds.
    ///
    /// # Errors
    /// The process has ended.
    pub fn learner_cpu_seconds(&self) -> anyhow::Result<f64> {
        service::process::usage(self.learner.pid())
            .map(|usage| usage.cpu_seconds)
            .context("the learner has ended")
    }

    /// Stops both processes. The learner publishes its last steps.
    pub fn stop(self) {
        self.learner.stop();
        self.store.stop();
    }
}

/// Waits until no process locks a file. The processes of a run that was killed end a moment after it.
fn wait_until_free(lock: &Path) -> anyhow::Result<()> {
    let file = match File::open(lock) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot open {}", lock.display())),
    };
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < FREE_WITHIN => thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => bail!("another process uses {}", lock.display()),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", lock.display()));
            }
        }
    }
}
