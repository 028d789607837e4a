//! What a checkpoint is worth on games that nothing was trained on, and how much better it is on those that training draws
//! from, both drawn evenly from all of the window: the gap between the two grows when a network learns games by heart (too many samples for each position, too small a window).

use serde::Serialize;

use crate::{
    data::batches::HostBatch,
    training::train::{TrainError, Trainer},
};

/// Positions to measure a network by.
#[derive(Debug)]
pub struct Measured {
    /// Of games that are held out of training.
    pub held_out: HostBatch,
    /// Of the games that training draws from.
    pub trained: HostBatch,
}

/// What the published network makes of some positions, in evaluation, in f32.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// Cross-entropy of the policy less the entropy of its targets (their Kullback-Leibler divergence), in nats.
    pub policy: f64,
    /// As it is trained: squared error, or cross-entropy in nats.
    pub value: f64,
}

/// Both sides of the gap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Validation {
    /// On games that are held out of training.
    pub held_out: Fit,
    /// On games that training draws from.
    pub trained: Fit,
}

impl Validation {
    /// Measures what `trainer` would publish now.
    ///
    /// # Errors
    /// [`TrainError`] where torch fails, or an answer is not finite.
    pub fn measure(trainer: &Trainer, by: &Measured) -> Result<Self, TrainError> {
        Ok(Self {
            held_out: trainer.fit(&by.held_out)?,
            trained: trainer.fit(&by.trained)?,
        })
    }

    /// How much worse the network is on held-out games: by policy, by value.
    pub fn gap(&self) -> Fit {
        Fit {
            policy: self.held_out.policy - self.trained.policy,
            value: self.held_out.value - self.trained.value,
        }
    }
}
