//! The training thread: takes batches, makes steps, publishes checkpoints. It makes all torch calls of the process.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use anyhow::{Context as _, bail};
use config::{LearnerConfig, RunConfig};
use onnx::TowerWeights;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    data::{
        batches::{HostBatch, StoreView},
        game::TrainingGame,
    },
    metrics::Metrics,
    network::NetworkShape,
    publishing::{
        export::ExportError,
        publish::{PublishError, Publisher},
        resume::Resumed,
        snapshot::Snapshot,
    },
    torch::{TorchError, device},
    training::{
        precision::{self, Precision},
        report::Reporter,
        train::{TrainError, Trainer, TrainingProgress, Validation},
    },
};

/// Number of refused exports in a row after which the learner ends: the actors would never get a trained network.
const MAX_REFUSED: u32 = 3;

/// Number of positions on which an export is compared with libtorch.
pub const PROOF_POSITIONS: usize = 64;

/// Everything that the training thread begins with.
pub struct Beginning {
    /// Configuration of the run.
    pub config: RunConfig,
    /// The game. Its rows prove the first export.
    pub game: TrainingGame,
    /// Sizes of the network.
    pub shape: NetworkShape,
    /// Publishes checkpoints.
    pub publisher: Publisher,
    /// The last statistics of the replay store.
    pub view: Arc<StoreView>,
    /// The learner's metrics.
    pub metrics: Arc<Metrics>,
    /// Queue of packed batches.
    pub batches: mpsc::Receiver<HostBatch>,
    /// Checkpoint from which training resumes.
    pub resumed: Option<Resumed>,
    /// Weights with which training begins if it does not resume; `None`: random ones.
    pub start: Option<Box<TowerWeights>>,
    /// Line of training, by which the replay store knows the batches of these weights.
    pub line: u64,
}

/// The training thread's state.
pub struct Worker {
    trainer: Trainer,
    /// Makes another trainer like this one, for measurements.
    new_trainer: Box<dyn Fn() -> Result<Trainer, TorchError>>,
    publisher: Publisher,
    reporter: Reporter,
    view: Arc<StoreView>,
    metrics: Arc<Metrics>,
    batches: mpsc::Receiver<HostBatch>,
    settings: LearnerConfig,
    /// Rows on which the next export is proven, one after another.
    proof_rows: Vec<u32>,
    /// The last checkpoint. It is restored if training diverges.
    safe: Snapshot,
    published_step: u64,
    rolled_back: bool,
    refused: u32,
}

impl Worker {
    /// Resumes from a checkpoint. Without one, publishes the first network at once, so that actors can begin.
    ///
    /// # Errors
    /// The device does not exist, the checkpoint or the first weights do not fit, or the first network cannot be published.
    pub fn begin(mut beginning: Beginning) -> anyhow::Result<Self> {
        let (settings, seed) = (beginning.config.learner, beginning.config.run.seed);
        let (publisher, view, game) = (&mut beginning.publisher, &beginning.view, beginning.game);
        let device = device::choose(settings.device)?;
        device::set_threads(settings.threads);
        let mut reporter = Reporter::open(&settings.folder, Arc::clone(&beginning.metrics))
            .with_context(|| format!("cannot write to {}", settings.folder.display()))?;
        let new_trainer = {
            let (shape, layout, settings) = (beginning.shape, game.layout, settings.clone());
            move || Trainer::new(&shape, &layout, &settings, seed, device)
        };
        let mut trainer = new_trainer()?;
        trainer.progress.draws.line = beginning.line;
        let start_from = &settings.start_from;
        tracing::info!(
            parameters = trainer.network.variables.parameters(),
            shape = %trainer.network.shape,
            "the network"
        );
        let safe = match beginning.resumed {
            Some(resumed) => {
                resumed
                    .snapshot
                    .restore(&mut trainer)
                    .with_context(|| format!("cannot resume from checkpoint {}", resumed.manifest.version))?;
                tracing::info!(version = %resumed.manifest.version, step = trainer.progress.step, "resumed");
                publisher.resume(&resumed.manifest);
                if let Some(damage) = resumed.damage {
                    tracing::error!(damage, "the model of the newest checkpoint is exported again");
                    publisher
                        .export_again(&trainer, &game.rows, &resumed.manifest)
                        .context("cannot export the model of the newest checkpoint again")?;
                }
                trainer.progress.draws.line = beginning.line;
                resumed.snapshot
            }
            None => {
                if let Some(weights) = beginning.start {
                    trainer
                        .begin_with(&weights)
                        .with_context(|| format!("`learner.start_from`: cannot begin with {start_from}"))?;
                    tracing::info!(start_from, "training begins with the weights of another network");
                }
                let (version, snapshot) = publisher
                    .publish(&trainer, &game.rows, view.games_inserted.load(Ordering::Relaxed))
                    .context("cannot publish the first network")?;
                reporter.published(version.as_str(), 0);
                snapshot
            }
        };
        trainer.progress.rollbacks = reporter.divergences.resume(trainer.progress.rollbacks);
        let known = Precision::configured(settings.precision).or(trainer.progress.precision);
        if let Some(precision) = known {
            trainer.set_precision(precision);
        }
        let published_step = trainer.progress.step;
        beginning.metrics.step.set(published_step as f64);
        beginning.metrics.checkpoint_step.set(published_step as f64);
        Ok(Self {
            trainer,
            new_trainer: Box::new(new_trainer),
            publisher: beginning.publisher,
            reporter,
            view: beginning.view,
            metrics: beginning.metrics,
            batches: beginning.batches,
            settings,
            proof_rows: game.rows,
            safe,
            published_step,
            rolled_back: false,
            refused: 0,
        })
    }

    /// Trains until `shutdown` or until the queue of batches is closed, then publishes the last steps. Batches that are still in
    /// the queue are dropped; the next process draws them again.
    ///
    /// # Errors
    /// A step or a checkpoint failed, or training diverged twice in a row.
    pub fn work(mut self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        while !shutdown.is_cancelled() {
            let begun = Instant::now();
            let Some(batch) = self.batches.blocking_recv() else {
                break;
            };
            self.reporter.waited(begun.elapsed());
            if !self.decide_precision(&batch)? {
                continue;
            }
            if self.trainer.progress.step == 0 && !self.settings.start_from.is_empty() {
                self.trainer
                    .calibrate(&batch)
                    .context("cannot measure the statistics of the first batch")?;
            }
            self.step(&batch)?;
            let step = self.trainer.progress.step;
            if step > self.published_step && self.settings.checkpoint_due(step) == step {
                self.publish()?;
            }
        }
        if self.trainer.progress.step > self.published_step {
            self.publish()?;
        }
        Ok(())
    }

    /// Measures which precision is faster, if the configuration leaves the choice open and no checkpoint has it. The measurement is made
    /// with the first batch, when the machine is as busy as it will be during training. Returns false if training diverged in it, so that
    /// the batch is not trained on.
    fn decide_precision(&mut self, batch: &HostBatch) -> anyhow::Result<bool> {
        if self.settings.precision != config::Precision::Auto || self.trainer.progress.precision.is_some() {
            return Ok(true);
        }
        let new_trainer = || (self.new_trainer)().map_err(TrainError::from);
        match precision::measure(new_trainer, batch) {
            Ok(precision) => {
                self.trainer.set_precision(precision);
                self.trainer.progress.precision = Some(precision);
                Ok(true)
            }
            Err(error @ TrainError::Diverged { .. }) => {
                self.trainer.skip(batch);
                self.roll_back(&error.to_string()).map(|()| false)
            }
            Err(error) => {
                Err(error).context("cannot measure which precision is faster; set learner.precision")
            }
        }
    }

    fn step(&mut self, batch: &HostBatch) -> anyhow::Result<()> {
        let begun = Instant::now();
        match self.trainer.step(batch) {
            Ok(report) => {
                let last = PROOF_POSITIONS.min(batch.positions).saturating_sub(1);
                let end = batch.row_ends.get(last).copied().unwrap_or_default();
                self.proof_rows.clear();
                self.proof_rows.extend(batch.rows.iter().take(end));
                let ratio = self.trainer.samples_per_position();
                self.reporter.stepped(&report, ratio, begun.elapsed());
                Ok(())
            }
            Err(error @ TrainError::Diverged { .. }) => {
                self.trainer.skip(batch);
                self.roll_back(&error.to_string())
            }
            Err(error) => Err(error).context("a training step failed"),
        }
    }

    /// Measures losses on held-out games, if there are any.
    fn validate(&mut self) -> anyhow::Result<()> {
        let batches = self.view.validation.lock().take();
        if let Some(batches) = batches {
            let validation = Validation::measure(&self.trainer, &batches)
                .context("cannot measure the losses on held-out games")?;
            self.reporter.validated(self.trainer.progress.step, &validation);
        }
        Ok(())
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        let games = self.view.games_inserted.load(Ordering::Relaxed);
        match self.publisher.publish(&self.trainer, &self.proof_rows, games) {
            Ok((version, snapshot)) => {
                self.validate()?;
                self.published_step = self.trainer.progress.step;
                self.reporter.published(version.as_str(), self.published_step);
                self.safe = snapshot;
                self.rolled_back = false;
                self.refused = 0;
                Ok(())
            }
            Err(PublishError::Export(ExportError::NotFinite(reason))) => self.roll_back(&reason),
            Err(PublishError::Export(ExportError::Refused(reason))) => {
                self.refused += 1;
                self.metrics.refused_checkpoints.increment(1);
                tracing::error!(
                    step = self.trainer.progress.step,
                    reason,
                    "the export was refused and is not published; training continues"
                );
                if self.refused >= MAX_REFUSED {
                    bail!(
                        "{} exports in a row were refused, the last one because {reason}",
                        self.refused
                    );
                }
                Ok(())
            }
            Err(error) => Err(error).context("cannot publish a checkpoint"),
        }
    }

    /// Restores the last checkpoint and continues with other batches. Returns an error if training diverged twice in a row.
    fn roll_back(&mut self, reason: &str) -> anyhow::Result<()> {
        let divergences = self.reporter.divergences.add();
        if self.rolled_back {
            bail!(
                "training diverged again after it was restored to step {}: {reason}; a lower learner.learning_rate may help",
                self.published_step
            );
        }
        let now = self.trainer.progress.clone();
        self.safe
            .restore(&mut self.trainer)
            .context("cannot restore the last checkpoint")?;
        // The batches since then are not drawn again: training on them would diverge again.
        self.trainer.progress = TrainingProgress {
            step: self.trainer.progress.step,
            rollbacks: divergences,
            ..now
        };
        self.rolled_back = true;
        tracing::error!(
            reason,
            step = self.trainer.progress.step,
            "training diverged; the last checkpoint is restored"
        );
        Ok(())
    }
}
