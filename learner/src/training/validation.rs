//! Losses of a checkpoint on games that are held out of training, and on games that training draws from.
//!
//! Both kinds of positions are drawn evenly from the whole window. The gap between the two losses grows when the network memorises
//! games, because there are too many samples for each position or the window is too small.

use serde::Serialize;

use crate::{
    data::store_view::ValidationBatches,
    training::train::{TrainError, Trainer},
};

/// Losses of the published network on a batch, in evaluation mode, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Cross-entropy of the policy less the entropy of its targets (their Kullback-Leibler divergence), in nats.
    pub policy: f64,
    /// The loss that the value is trained with: squared error, or cross-entropy in nats.
    pub value: f64,
}

/// Losses on held-out games and on games that training draws from.
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
