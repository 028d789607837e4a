//! Losses of a checkpoint on games that are held out of training, and on games that training draws from.
//!
//! Both kinds of positions are drawn evenly from the whole window. The gap between the two losses grows when the network memorises
//! games, because there are too many samples for each position or the window is too small.

use serde::Serialize;

use crate::{
    data::store_view::ValidationBatches,
    training::train::{Fit, TrainError, Trainer},
};

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
