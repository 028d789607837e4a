//! [`Snapshot`]: a trainer's state as files, restored bit for bit.

use anyhow::Context as _;
use bytes::Bytes;
use checkpoints::{OPTIMIZER, WEIGHTS};
use serde::{Deserialize, Serialize};

use crate::{
    torch::tensor_files,
    training::{
        average,
        optimizer::OptimizerState,
        train::{Trainer, TrainingProgress},
    },
};

/// The state of training. A trainer restored from it continues bit for bit as if it had not stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// `weights.safetensors`: weights and running statistics.
    pub weights: Bytes,
    /// `optimizer.safetensors`: the optimiser's moments, and the averaged weights where there are any.
    pub optimizer: Bytes,
    /// Counters and seed.
    pub state: LearnerState,
}

/// The manifest's `learner_state`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnerState {
    /// Counters.
    pub progress: TrainingProgress,
    /// The optimiser's state without its moments.
    pub optimizer: OptimizerState,
    /// The run's seed, from which batches are drawn.
    pub seed: u64,
}

/// Text in front of an error of a file's tensors.
fn in_file(file: &str) -> String {
    format!("cannot use the tensors of {file}")
}

impl Snapshot {
    /// Copies the state of a trainer. The same state gives the same bytes.
    ///
    /// # Errors
    /// A torch operation failed.
    pub fn take(trainer: &Trainer, seed: u64) -> anyhow::Result<Self> {
        let variables = &trainer.network.variables;
        let mut optimizer = trainer.optimizer.to_host(variables)?;
        if let Some(average) = &trainer.average {
            optimizer.extend(average.to_host()?);
        }
        Ok(Self {
            weights: tensor_files::write(&variables.to_host()?)?.into(),
            optimizer: tensor_files::write(&optimizer)?.into(),
            state: LearnerState {
                progress: trainer.progress.clone(),
                optimizer: trainer.optimizer.state(),
                seed,
            },
        })
    }

    /// Restores this state in a trainer. If the trainer has another optimiser than the checkpoint, the optimiser's state begins
    /// anew, and a warning is logged.
    ///
    /// # Errors
    /// The first tensor that does not fit, with the file that contains it.
    pub fn restore(&self, trainer: &mut Trainer) -> anyhow::Result<()> {
        let weights = tensor_files::read(&self.weights);
        weights
            .and_then(|weights| trainer.network.variables.load(&weights))
            .context(in_file(WEIGHTS))?;
        self.restore_optimizer(trainer).context(in_file(OPTIMIZER))?;
        trainer.progress = self.state.progress.clone();
        Ok(())
    }

    fn restore_optimizer(&self, trainer: &mut Trainer) -> anyhow::Result<()> {
        let (moments, averages) = average::split(tensor_files::read(&self.optimizer)?);
        match &mut trainer.average {
            Some(average) if averages.is_empty() => {
                tracing::warn!("the checkpoint has no averaged weights; the average begins anew");
                average.update(&trainer.network.variables, 0)?;
            }
            Some(average) => average.load(averages)?,
            None => {}
        }
        let (was, now) = (self.state.optimizer.rule, trainer.optimizer.state().rule);
        if now == was {
            let variables = &trainer.network.variables;
            return trainer.optimizer.load(variables, &self.state.optimizer, &moments);
        }
        tracing::warn!(?was, ?now, "the optimiser was changed; its state begins anew");
        Ok(())
    }
}
