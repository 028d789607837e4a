//! [`Trainer`]: network, optimiser and counters, and one training step.

use config::LearnerConfig;
use games::RowLayout;
use onnx::TowerWeights;
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};

use crate::{
    data::{
        batches::{HostBatch, ValidationBatches},
        ledger::DrawCounts,
        targets::Targets,
    },
    network::{Mode, Network, NetworkShape, POLICY, Pass, VALUE, inputs::Feeder},
    torch::{TorchError, to_host},
    training::{
        average::Average,
        loss::{self, Term},
        optimizer::{Optimizer, learning_rate},
        precision::Precision,
    },
};

/// Share of a batch's statistics in the running statistics, after the first batches.
const STATISTICS_MOMENTUM: f64 = 0.1;

/// Counters of training. Stored with each checkpoint, so that training resumes exactly there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainingProgress {
    /// Number of steps that the present weights were trained for.
    pub step: u64,
    /// Counts of samples and positions.
    #[serde(flatten)]
    pub draws: DrawCounts,
    /// Number of times that training has diverged; see [`crate::training::divergences`].
    pub rollbacks: u64,
    /// The precision that was measured to be faster. It is kept so that training continues bit for bit after a restart.
    #[serde(default)]
    pub precision: Option<Precision>,
    /// Number of samples trained on whose problems were pairs. Checkpoints of earlier releases did not count them.
    #[serde(default)]
    pub pairs: u64,
}

/// Figures of one training step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    /// The step's number, counted from 1.
    pub step: u64,
    /// The terms of the loss by name, each without its weight ([`crate::training::loss::Term`]).
    pub losses: Vec<(&'static str, f64)>,
    /// Weighted sum of the losses, which the step minimises.
    pub loss: f64,
    /// The policy loss that a perfect network would have.
    pub target_entropy: f64,
    /// Norm of the gradient before it was clipped.
    pub gradient_norm: f64,
    /// The step's learning rate.
    pub learning_rate: f64,
    /// Number of samples in the batch.
    pub samples: usize,
}

impl StepReport {
    /// Returns the loss of this name; NaN if the network has no such term.
    pub fn of(&self, name: &str) -> f64 {
        let found = self.losses.iter().find(|&&(term, _)| term == name);
        found.map_or(f64::NAN, |&(_, loss)| loss)
    }
}

/// Losses of the published network on a batch, in evaluation mode, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Cross-entropy of the policy less the entropy of its targets (their Kullback-Leibler divergence), in nats.
    pub policy: f64,
    /// The loss that the value is trained with: squared error, or cross-entropy in nats.
    pub value: f64,
}

/// Losses on held-out games and on games that training draws from. Both kinds of positions are drawn evenly from the whole window. The
/// gap between the two grows when the network memorises games, because there are too many samples for each position or the window is
/// too small.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// On games that are held out of training.
    pub held_out: Fit,
    /// On games that training draws from.
    pub trained: Fit,
}

impl Validation {
    /// Measures the network that `trainer` would publish now.
    ///
    /// # Errors
    /// [`TrainError`] if torch fails, or a loss is not finite.
    pub fn measure(trainer: &Trainer, batches: &ValidationBatches) -> Result<Self, TrainError> {
        Ok(Self {
            held_out: trainer.fit(&batches.held_out)?,
            trained: trainer.fit(&batches.trained)?,
        })
    }

    /// Returns the losses on held-out games less the losses on games that training draws from.
    pub fn gap(&self) -> Fit {
        Fit {
            policy: self.held_out.policy - self.trained.policy,
            value: self.held_out.value - self.trained.value,
        }
    }
}

/// Error: a training step was not made.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Loss or gradient is infinite or not a number. Nothing but running statistics has changed.
    #[error("step {step} diverged: loss {loss}, gradient norm {gradient_norm}")]
    Diverged {
        /// The step that would have been made.
        step: u64,
        /// Loss of the step.
        loss: f64,
        /// Norm of the gradient.
        gradient_norm: f64,
    },
    /// A torch operation failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

/// Network, optimiser and counters: all that a training step changes.
#[derive(Debug)]
pub struct Trainer {
    /// The network that is trained.
    pub network: Network,
    pub(crate) optimizer: Optimizer,
    pub(crate) average: Option<Average>,
    /// Counters of training.
    pub progress: TrainingProgress,
    feeder: Feeder,
    config: LearnerConfig,
    device: Device,
    kind: Kind,
}

impl Trainer {
    /// Creates a network and an optimiser on `device`; the first weights are drawn from `seed`.
    ///
    /// # Errors
    /// [`TorchError`], e.g. if the device has no memory.
    pub fn new(
        shape: &NetworkShape,
        layout: &RowLayout,
        config: &LearnerConfig,
        seed: u64,
        device: Device,
    ) -> Result<Self, TorchError> {
        let network = Network::new(shape, seed, device)?;
        let optimizer = Optimizer::new(config.optimizer, config.weight_decay, &network.variables)?;
        let average = (config.average_decay > 0.0)
            .then(|| Average::new(shape, config.average_decay, device))
            .transpose()?;
        let mut trainer = Self {
            network,
            optimizer,
            average,
            progress: TrainingProgress::default(),
            feeder: Feeder::new(layout, device)?,
            config: config.clone(),
            device,
            kind: Kind::Float,
        };
        trainer.average_first()?;
        Ok(trainer)
    }

    /// Sets the precision of the tower in training; see [`Pass::kind`].
    pub fn set_precision(&mut self, precision: Precision) {
        self.kind = precision.kind();
    }

    /// Returns the network that is published: the average, if weights are averaged.
    pub fn published(&self) -> &Network {
        self.average
            .as_ref()
            .map_or(&self.network, |average| &average.network)
    }

    /// Begins with the weights of an ONNX file instead of random ones.
    ///
    /// # Errors
    /// The network has other sizes; nothing has changed then.
    pub fn begin_with(&mut self, weights: &TowerWeights) -> anyhow::Result<()> {
        self.network.begin_with(weights)?;
        Ok(self.average_first()?)
    }

    /// Takes the statistics of a batch for the normalisations of a network that began with the weights of an ONNX file, which has
    /// none. What the network computes stays the same ([`Mode::Calibrate`]).
    ///
    /// # Errors
    /// [`TrainError::Torch`].
    pub fn calibrate(&mut self, batch: &HostBatch) -> Result<(), TrainError> {
        let _guard = tch::no_grad_guard();
        let inputs = self.feeder.batch(&batch.inputs)?;
        let pass = Pass {
            mode: Mode::Calibrate,
            kind: Kind::Float,
        };
        self.network.forward(&inputs, pass)?;
        Ok(self.average_first()?)
    }

    /// Makes the average that of the first weights alone.
    fn average_first(&mut self) -> Result<(), TorchError> {
        match &mut self.average {
            Some(average) => average.update(&self.network.variables, 0),
            None => Ok(()),
        }
    }

    /// Trains one step on a batch.
    ///
    /// # Errors
    /// [`TrainError::Diverged`] if loss or gradient is not finite; the weights have not changed then.
    pub fn step(&mut self, batch: &HostBatch) -> Result<StepReport, TrainError> {
        let terms = self.terms(&self.network, batch, self.pass())?;
        let total = loss::total(&terms)?;
        let mut gradients = self.gradients(&total)?;
        let norm = norm(&gradients)?;
        let all: Vec<&Tensor> = [&total, &norm]
            .into_iter()
            .chain(terms.iter().map(|term| &term.loss))
            .collect();
        // The only point where the host waits for the device.
        let numbers = to_host(&Tensor::f_stack(&all, 0).map_err(TorchError::from)?)?;
        let mut numbers = numbers.into_iter().map(f64::from);
        let [loss, gradient_norm] = [(); 2].map(|()| numbers.next().unwrap_or(f64::NAN));
        let losses = terms.iter().map(|term| term.name).zip(numbers).collect();
        if !loss.is_finite() || !gradient_norm.is_finite() {
            return Err(TrainError::Diverged {
                step: self.progress.step + 1,
                loss,
                gradient_norm,
            });
        }
        let limit = self.config.max_gradient_norm;
        if limit > 0.0 && gradient_norm > limit {
            for gradient in &mut gradients {
                let _ = gradient
                    .f_mul_scalar_(limit / gradient_norm)
                    .map_err(TorchError::from)?;
            }
        }
        let learning_rate = learning_rate(&self.config, self.progress.step);
        self.optimizer
            .step(&mut self.network.variables, gradients, learning_rate)?;
        self.count(batch);
        if let Some(average) = &mut self.average {
            average.update(&self.network.variables, self.progress.step)?;
        }
        Ok(StepReport {
            step: self.progress.step,
            losses,
            loss,
            target_entropy: batch.policy.entropy,
            gradient_norm,
            learning_rate,
            samples: batch.positions,
        })
    }

    /// Measures the losses of the published network on a batch. Changes nothing.
    ///
    /// # Errors
    /// [`TrainError`] if torch fails, or a loss is not finite.
    pub fn fit(&self, batch: &HostBatch) -> Result<Fit, TrainError> {
        let _guard = tch::no_grad_guard();
        let terms = self.terms(self.published(), batch, Pass::EVALUATE)?;
        let mean = |name| match terms.iter().find(|term| term.name == name) {
            Some(term) => Ok(f64::from(to_host(&term.loss)?[0])),
            None => Err(TorchError::new(&format!("the network has no {name} loss"))),
        };
        let fit = Fit {
            policy: mean(POLICY)? - batch.policy.entropy,
            value: mean(VALUE)?,
        };
        if !(fit.policy.is_finite() && fit.value.is_finite()) {
            return Err(TorchError::new("the losses on held-out games are not finite").into());
        }
        Ok(fit)
    }

    /// Evaluates a batch with `network`, and returns the terms of its loss.
    fn terms(&self, network: &Network, batch: &HostBatch, pass: Pass) -> Result<Vec<Term>, TorchError> {
        let targets = Targets::new(batch, self.device)?;
        let inputs = self.feeder.batch(&batch.inputs)?;
        let outputs = network.forward(&inputs, pass)?;
        loss::terms(&outputs, &targets)
    }

    /// Returns the number of samples trained on for each position inserted.
    pub fn samples_per_position(&self) -> f64 {
        self.progress.draws.samples as f64 / self.progress.draws.inserted.max(1) as f64
    }

    /// Counts a batch as drawn, although no step is made on it.
    pub(crate) fn skip(&mut self, batch: &HostBatch) {
        let draws = &mut self.progress.draws;
        draws.samples += batch.positions as u64;
        draws.next_batch = batch.number + 1;
        draws.inserted = batch.inserted;
        draws.forgone = batch.forgone;
        draws.store_inserted = batch.positions_inserted;
    }

    fn count(&mut self, batch: &HostBatch) {
        self.progress.step += 1;
        self.progress.pairs += batch.pairs;
        self.skip(batch);
    }

    fn pass(&self) -> Pass {
        // In the first steps the running statistics are the plain mean over the batches, so that their initial values have no
        // influence.
        let seen = self.progress.step as f64;
        Pass {
            mode: Mode::Train {
                momentum: STATISTICS_MOMENTUM.max(1.0 / (seen + 1.0)),
            },
            kind: self.kind,
        }
    }

    /// Computes the gradients of all variables, one flat tensor for each group.
    fn gradients(&self, loss: &Tensor) -> Result<[Tensor; 2], TorchError> {
        let [weights, others] = &self.network.variables.groups;
        let inputs: Vec<&Tensor> = weights.views.iter().chain(&others.views).collect();
        let gradients = Tensor::f_run_backward(&[loss], &inputs, false, false)?;
        let (of_weights, of_others) = gradients.split_at(weights.views.len());
        Ok([weights.flatten(of_weights)?, others.flatten(of_others)?])
    }
}

/// Returns the Euclidean norm over both groups, a scalar on the device.
fn norm(gradients: &[Tensor; 2]) -> Result<Tensor, TorchError> {
    let norms = [gradients[0].f_norm()?, gradients[1].f_norm()?];
    Ok(Tensor::f_stack(&norms, 0)?.f_norm()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Releases that knew several replay stores wrote each store's own count next to their sum.
    #[test]
    fn progress_of_earlier_releases_is_read() {
        let written = r#"{"step": 6, "samples": 192, "next_batch": 6, "inserted": 96, "forgone": 4, "store_inserted": 90,
            "stores": {"a": 60, "b": 30}, "rollbacks": 1, "precision": null}"#;
        let progress: TrainingProgress = serde_json::from_str(written).unwrap();
        let expected = TrainingProgress {
            step: 6,
            draws: DrawCounts {
                samples: 192,
                next_batch: 6,
                inserted: 96,
                forgone: 4,
                store_inserted: 90,
                line: 0,
            },
            rollbacks: 1,
            precision: None,
            pairs: 0,
        };
        assert_eq!(progress, expected);
        let value = serde_json::to_value(&progress).unwrap();
        assert_eq!(value["store_inserted"], 90);
        assert!(value.get("draws").is_none() && value.get("stores").is_none());
    }
}
