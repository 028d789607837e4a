//! Publishing a checkpoint: snapshot, export, proof, upload, label, and removal of old checkpoints.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use checkpoints::{
    Draft, Lease, MODEL, Manifest, OPTIMIZER, Version, WEIGHTS, milestones, version::sha256_hex,
};
use games::RowLayout;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    publishing::{
        export::{Agreement, ExportError, Prover, export, with_pairs},
        retention::Retention,
        snapshot::Snapshot,
        until_answered,
    },
    training::train::Trainer,
};

/// Error: no checkpoint was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The network could not be exported, or the proof of its export failed.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The training state cannot be saved; or the model store refused (another learner may have taken over), or did not answer until
    /// the process was stopped.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// Publishes checkpoints of one run.
#[derive(Debug)]
pub struct Publisher {
    lease: Arc<Lease>,
    layout: RowLayout,
    seed: u64,
    retention: Retention,
    parent: Option<Version>,
    clock: Clock,
    prover: Prover,
    runtime: Handle,
    shutdown: CancellationToken,
}

impl Publisher {
    /// Creates a publisher that holds `lease`, and removes the old checkpoints that `retention` does not keep.
    ///
    /// # Errors
    /// ONNX Runtime cannot be loaded, so that no export could be proven.
    pub fn new(
        lease: Arc<Lease>,
        layout: RowLayout,
        seed: u64,
        retention: Retention,
        runtime: Handle,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            lease,
            layout,
            seed,
            retention,
            parent: None,
            clock: Clock::new(),
            prover: Prover::load()?,
            runtime,
            shutdown,
        })
    }

    /// Sets the checkpoint from which training resumed, the parent of the next one, and the time for which that was trained.
    pub fn resume(&mut self, parent: &Manifest) {
        self.parent = Some(parent.version.clone());
        self.clock.resume(Duration::from_millis(parent.draft.trained_ms));
    }

    /// Writes the model of the checkpoint that the trainer's state was restored from again, proven on `rows`. If this build exports other
    /// bytes, publishes them as a checkpoint of the same step, and moves the label `latest` to it. Otherwise like [`Publisher::publish`].
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn export_again(
        &mut self,
        trainer: &Trainer,
        rows: &[u32],
        damaged: &Manifest,
    ) -> Result<(), PublishError> {
        let (model, _) = self.export(trainer, rows)?;
        let repository = self.lease.repository();
        let is_same = sha256_hex(&model) == damaged.files.get(MODEL).map_or("", |file| &file.sha256);
        let failure = "cannot write the model of the newest checkpoint again";
        let version = self
            .runtime
            .block_on(until_answered(failure, &self.shutdown, async || {
                if is_same {
                    repository.restore(damaged, MODEL, model.clone()).await?;
                    return Ok(damaged.version.clone());
                }
                let mut files = vec![(MODEL, model.clone())];
                for file in [WEIGHTS, OPTIMIZER] {
                    files.push((file, repository.fetch(damaged, file).await?));
                }
                self.upload(&damaged.draft, &files, None).await
            }))?;
        tracing::info!(%version, "the newest checkpoint is sound again");
        self.parent = Some(version);
        Ok(())
    }

    /// Exports the trainer's network, and proves the export on `rows`.
    fn export(&self, trainer: &Trainer, rows: &[u32]) -> Result<(Bytes, Agreement), ExportError> {
        let model = export(trainer.published(), &self.layout, trainer.progress.step)?;
        let model = Bytes::from(with_pairs(model, &self.layout, trainer.progress.pairs)?);
        let agreement = self
            .prover
            .prove(&model, trainer.published(), &self.layout, rows)?;
        Ok((model, agreement))
    }

    /// Publishes the trainer's state, proven on `rows` (back to back, at least one), and moves the label `latest` to it. Must be
    /// called from outside the async runtime. Retries while the store does not answer.
    ///
    /// # Errors
    /// [`PublishError`]. Either nothing is visible then, or the checkpoint is visible and the label moves with the next one.
    pub fn publish(
        &mut self,
        trainer: &Trainer,
        rows: &[u32],
        games_seen: u64,
    ) -> Result<(Version, Snapshot), PublishError> {
        let step = trainer.progress.step;
        let snapshot = Snapshot::take(trainer, self.seed)?;
        let (model, agreement) = self.export(trainer, rows)?;
        let trained = self.clock.trained();
        let draft = Draft {
            game: self.layout.game.clone(),
            layout: as_json(&self.layout),
            actions: self.layout.actions,
            network: as_json(&trainer.network.shape),
            step,
            positions_seen: trainer.progress.draws.samples,
            games_seen,
            trained_ms: trained.as_millis() as u64,
            parent: self.parent.clone(),
            learner_state: as_json(&snapshot.state),
        };
        let files = [
            (MODEL, model),
            (WEIGHTS, snapshot.weights.clone()),
            (OPTIMIZER, snapshot.optimizer.clone()),
        ];
        let milestone = milestones::reached(self.clock.published, trained);
        let failure = "cannot publish, training waits";
        let version = self.runtime.block_on(async {
            let upload = || self.upload(&draft, &files, milestone);
            let version = until_answered(failure, &self.shutdown, upload).await?;
            self.prune().await;
            anyhow::Ok(version)
        })?;
        self.clock.published = Some(trained);
        tracing::info!(
            %version,
            policy_difference = f64::from(agreement.policy),
            value_difference = f64::from(agreement.value),
            positions = agreement.positions,
            "published a checkpoint; ONNX Runtime agrees with libtorch"
        );
        self.parent = Some(version.clone());
        Ok((version, snapshot))
    }

    async fn upload(
        &self,
        draft: &Draft,
        files: &[(&str, Bytes)],
        milestone: Option<&str>,
    ) -> anyhow::Result<Version> {
        let version = self.lease.publish(draft.clone(), files.to_vec()).await?;
        if let Some(milestone) = milestone {
            // The first checkpoint that gets a milestone keeps it.
            let repository = self.lease.repository();
            repository.swap_label(milestone, None, &version).await?;
        }
        self.lease.set_label(&version).await?;
        Ok(version)
    }

    async fn prune(&self) {
        match self.lease.repository().prune(self.retention.keep().await).await {
            Ok(pruned) if pruned.leftovers.is_empty() => {}
            Ok(pruned) => tracing::info!(
                leftovers = pruned.leftovers.len(),
                "removed files of interrupted publications"
            ),
            Err(error) => {
                tracing::warn!(error = %service::chain(&error), "cannot remove old checkpoints; retrying after the next one")
            }
        }
    }
}

/// Clock of the training time, which continues from checkpoint to checkpoint while a learner runs.
#[derive(Debug)]
struct Clock {
    /// Time of training at the start of this process.
    before: Duration,
    started: Instant,
    /// Time of training at the last publication; `None`: nothing is published yet.
    published: Option<Duration>,
}

impl Clock {
    fn new() -> Self {
        Self {
            before: Duration::ZERO,
            started: Instant::now(),
            published: None,
        }
    }

    fn resume(&mut self, trained: Duration) {
        self.before = trained;
        self.published = Some(trained);
    }

    /// Returns the training time so far; 0 for the first checkpoint.
    fn trained(&self) -> Duration {
        match self.published {
            Some(_) => self.before + self.started.elapsed(),
            None => Duration::ZERO,
        }
    }
}

/// Serialises plain data, which cannot fail, as JSON.
fn as_json<T: serde::Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or(serde_json::Value::Null)
}
