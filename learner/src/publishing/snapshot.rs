//! [`Snapshot`]: a trainer's state as files, restored bit for bit.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    network::NetworkShape,
    torch::tensor_files::{self, TensorsError},
    training::{
        average,
        optimizer::OptimizerState,
        train::{Progress, Trainer},
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
    pub progress: Progress,
    /// The optimiser's state without its moments.
    pub optimizer: OptimizerState,
    /// The run's seed, from which batches are drawn.
    pub seed: u64,
}

/// Error: the training state cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The network in the checkpoint is not the one that `[model]` describes.
    #[error(
        "[model] describes another network than the checkpoint ({}); restore it, or begin a new run folder",
        .0.join(", ")
    )]
    Network(Vec<String>),
    /// A file cannot be used.
    #[error("cannot use the tensors of {file}")]
    File {
        /// The file's name.
        file: &'static str,
        /// Cause.
        source: TensorsError,
    },
}

fn in_file(file: &'static str) -> impl Fn(TensorsError) -> SnapshotError {
    move |source| SnapshotError::File { file, source }
}

impl Snapshot {
    /// Copies the state of a trainer. The same state gives the same bytes.
    ///
    /// # Errors
    /// [`SnapshotError::File`] if a torch operation fails.
    pub fn take(trainer: &Trainer, seed: u64) -> Result<Self, SnapshotError> {
        let variables = trainer.network.variables();
        let weights = || tensor_files::write(&variables.to_host()?);
        let optimizer = || {
            let mut state = trainer.optimizer.to_host(variables)?;
            if let Some(average) = &trainer.average {
                state.extend(average.to_host()?);
            }
            tensor_files::write(&state)
        };
        Ok(Self {
            weights: weights().map_err(in_file(checkpoints::WEIGHTS))?.into(),
            optimizer: optimizer().map_err(in_file(checkpoints::OPTIMIZER))?.into(),
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
    /// [`SnapshotError::File`] with the first tensor that does not fit.
    pub fn restore(&self, trainer: &mut Trainer) -> Result<(), SnapshotError> {
        let weights = tensor_files::read(&self.weights).map_err(in_file(checkpoints::WEIGHTS))?;
        trainer
            .network
            .variables_mut()
            .load(&weights)
            .map_err(in_file(checkpoints::WEIGHTS))?;
        let state = tensor_files::read(&self.optimizer).map_err(in_file(checkpoints::OPTIMIZER))?;
        let (moments, averages) = average::split(state);
        match &mut trainer.average {
            Some(average) if averages.is_empty() => {
                tracing::warn!("the checkpoint has no averaged weights; the average begins anew");
                average
                    .update(trainer.network.variables(), 0)
                    .map_err(|error| in_file(checkpoints::WEIGHTS)(error.into()))?;
            }
            Some(average) => average.load(averages).map_err(in_file(checkpoints::OPTIMIZER))?,
            None => {}
        }
        let rule = trainer.optimizer.state().rule;
        if rule == self.state.optimizer.rule {
            let variables = trainer.network.variables();
            trainer
                .optimizer
                .load(variables, &self.state.optimizer, &moments)
                .map_err(in_file(checkpoints::OPTIMIZER))?;
        } else {
            tracing::warn!(
                was = self.state.optimizer.rule,
                now = rule,
                "the optimiser was changed; its state begins anew"
            );
        }
        trainer.progress = self.state.progress.clone();
        Ok(())
    }
}

/// Compares a checkpoint's network with the network that is configured.
///
/// # Errors
/// [`SnapshotError::Network`] with the differences.
pub fn check_network(wanted: &NetworkShape, found: &NetworkShape) -> Result<(), SnapshotError> {
    let differences = wanted.differences(found);
    if differences.is_empty() {
        Ok(())
    } else {
        Err(SnapshotError::Network(differences))
    }
}
