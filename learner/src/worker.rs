//! The training thread: takes batches, makes steps, publishes. All torch calls of the process happen here.

use std::{sync::Arc, time::Instant};

use anyhow::{Context as _, bail};
use config::{self, RunConfig};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    data::{batches::HostBatch, store_view::StoreView},
    metrics::Metrics,
    publishing::{
        publish::{PublishError, Publisher},
        resume::Resumed,
        snapshot::Snapshot,
    },
    torch::TorchError,
    training::{
        precision::Precision,
        precision_choice,
        report::Reporter,
        train::{Progress, TrainError, Trainer},
        validation::Validation,
    },
};

/// So many refused exports in a row mean that nothing trained would ever be played.
const MAX_REFUSED: u32 = 3;

/// Positions of a batch that its export is proven on.
pub const PROOF_POSITIONS: usize = 64;

/// The training thread's state.
pub struct Worker {
    trainer: Trainer,
    publisher: Publisher,
    reporter: Reporter,
    view: Arc<StoreView>,
    metrics: Arc<Metrics>,
    batches: mpsc::Receiver<HostBatch>,
    checkpoint_steps: u64,
    /// What the next export is proven on.
    proof_rows: Vec<u32>,
    /// The last checkpoint, to go back to.
    safe: Snapshot,
    published_step: u64,
    rolled_back: bool,
    refused: u32,
    /// Makes another trainer like this one, to measure with.
    scratch: Scratch,
    wanted_precision: config::Precision,
}

/// Makes trainers to be thrown away.
pub type Scratch = Box<dyn Fn() -> Result<Trainer, TorchError>>;

/// What a worker is made of.
pub struct Parts {
    /// Makes new trainers, all alike.
    pub new_trainer: Scratch,
    /// Where checkpoints go.
    pub publisher: Publisher,
    /// Where figures go.
    pub reporter: Reporter,
    /// What the replay store said last.
    pub view: Arc<StoreView>,
    /// The learner's metrics.
    pub metrics: Arc<Metrics>,
    /// Where batches come from.
    pub batches: mpsc::Receiver<HostBatch>,
    /// Some rows of the game, back to back, to prove the first export on.
    pub rows: Vec<u32>,
    /// The checkpoint to go on from.
    pub resumed: Option<Resumed>,
}

impl Worker {
    /// Goes on from a checkpoint; or publishes the random network at once, so that actors can begin.
    ///
    /// # Errors
    /// Where the checkpoint does not fit, or the random network cannot be published.
    pub fn begin(config: &RunConfig, parts: Parts) -> anyhow::Result<Self> {
        let Parts {
            new_trainer,
            mut publisher,
            mut reporter,
            view,
            metrics,
            batches,
            rows: proof_rows,
            resumed,
        } = parts;
        let mut trainer = new_trainer()?;
        tracing::info!(
            parameters = trainer.network().variables().parameters(),
            shape = %trainer.network().shape(),
            "the network"
        );
        let safe = match resumed {
            Some(resumed) => {
                resumed
                    .snapshot
                    .restore(&mut trainer)
                    .with_context(|| format!("cannot resume from checkpoint {}", resumed.version))?;
                tracing::info!(version = %resumed.version, step = trainer.progress.step, "resumed");
                publisher.set_parent(resumed.version);
                resumed.snapshot
            }
            None => {
                let (version, snapshot) = publisher
                    .publish(&trainer, &proof_rows, view.games_inserted())
                    .context("cannot publish the first, random network")?;
                reporter.published(version.as_str(), 0);
                snapshot
            }
        };
        trainer.progress.rollbacks = reporter.divergences.resume(trainer.progress.rollbacks);
        let wanted_precision = config.learner.precision;
        let known = Precision::configured(wanted_precision).or(trainer.progress.precision);
        if let Some(precision) = known {
            trainer.set_precision(precision);
        }
        metrics.resumed(trainer.progress.step);
        Ok(Self {
            published_step: trainer.progress.step,
            trainer,
            publisher,
            reporter,
            view,
            metrics,
            batches,
            checkpoint_steps: config.learner.checkpoint_steps,
            proof_rows,
            safe,
            rolled_back: false,
            refused: 0,
            scratch: new_trainer,
            wanted_precision,
        })
    }

    /// Trains until `shutdown`, or until no more batches come; then publishes what is not published yet. Batches that are
    /// ready are not trained on any more after `shutdown`: they are drawn again when training goes on.
    ///
    /// # Errors
    /// Where training cannot go on.
    pub fn work(mut self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        while !shutdown.is_cancelled() {
            let asked = Instant::now();
            let Some(batch) = self.batches.blocking_recv() else {
                break;
            };
            self.reporter.waited(asked.elapsed());
            self.decide_precision(&batch)?;
            self.step(&batch)?;
            let step = self.trainer.progress.step;
            if step > self.published_step && is_due(step, self.checkpoint_steps) {
                self.publish()?;
            }
        }
        if self.trainer.progress.step > self.published_step {
            self.publish()?;
        }
        Ok(())
    }

    /// With the first batch there is something to measure with, and the machine is as busy as it will be.
    fn decide_precision(&mut self, batch: &HostBatch) -> anyhow::Result<()> {
        if self.wanted_precision != config::Precision::Auto || self.trainer.progress.precision.is_some() {
            return Ok(());
        }
        let new_trainer = || (self.scratch)().map_err(TrainError::from);
        let precision = precision_choice::measure(new_trainer, batch)
            .context("cannot measure which precision is faster; set learner.precision")?;
        self.trainer.set_precision(precision);
        self.trainer.progress.precision = Some(precision);
        Ok(())
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

    /// Where games are held out, and some have come by now.
    fn validate(&mut self) -> anyhow::Result<()> {
        if let Some(batches) = self.view.take_validation() {
            let validation = Validation::measure(&self.trainer, &batches)
                .context("cannot measure what was learned on held-out games")?;
            self.reporter.validated(self.trainer.progress.step, &validation);
        }
        Ok(())
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        let games = self.view.games_inserted();
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
            Err(PublishError::Spoilt(reason)) => self.roll_back(&reason),
            Err(PublishError::Refused(reason)) => {
                self.refused += 1;
                self.metrics.refused_checkpoint();
                tracing::error!(
                    step = self.trainer.progress.step,
                    reason,
                    "the export was refused and is not published; training goes on"
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

    /// Goes back to the last checkpoint and on with other batches; the second time in a row it gives up.
    fn roll_back(&mut self, reason: &str) -> anyhow::Result<()> {
        let divergences = self.reporter.divergences.add();
        if self.rolled_back {
            bail!(
                "training diverged again after going back to step {}: {reason}; a lower learner.learning_rate may help",
                self.published_step
            );
        }
        let now = self.trainer.progress.clone();
        self.safe
            .restore(&mut self.trainer)
            .context("cannot go back to the last checkpoint")?;
        // The batches since then are used up: the same ones would do the same again.
        self.trainer.progress = Progress {
            step: self.trainer.progress.step,
            rollbacks: divergences,
            ..now
        };
        self.rolled_back = true;
        tracing::error!(
            reason,
            step = self.trainer.progress.step,
            "training diverged; going back to the last checkpoint"
        );
        Ok(())
    }
}

/// Whether a checkpoint is published at this step: every so many steps, and once early, so that actors need not
/// wait long for the first trained network.
fn is_due(step: u64, checkpoint_steps: u64) -> bool {
    step.is_multiple_of(checkpoint_steps) || step == (checkpoint_steps / 5).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_trained_checkpoint_comes_early() {
        let due: Vec<u64> = (1..=150).filter(|&step| is_due(step, 50)).collect();
        assert_eq!(due, [10, 50, 100, 150]);
        assert!(is_due(1, 1) && is_due(1, 3));
    }
}
