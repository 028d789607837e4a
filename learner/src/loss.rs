//! The loss, as in AlphaZero and dlchess: cross-entropy with the visit distribution, over all logits, plus the mean
//! squared error of the value. Weight decay is the optimiser's.

use tch::{Kind, Reduction, Tensor};

use crate::{batches::DeviceBatch, network::Outputs, torch::TorchError};

/// The parts of a loss, scalars on the device.
#[derive(Debug)]
pub struct Losses {
    /// Mean cross-entropy over the samples that have a policy target, in nats.
    pub policy: Tensor,
    /// Mean squared error over all samples.
    pub value: Tensor,
    /// `policy + value_weight · value`
    pub total: Tensor,
}

/// The losses of a batch.
///
/// # Errors
/// [`TorchError`].
pub fn losses(outputs: &Outputs, batch: &DeviceBatch, value_weight: f64) -> Result<Losses, TorchError> {
    // Gathering the few searched actions costs less than a dense target (chess has 4,672 logits).
    let log_probabilities = outputs.logits.f_log_softmax(-1, Kind::Float)?.f_flatten(0, -1)?;
    let policy = log_probabilities
        .f_gather(0, &batch.policy_at, false)?
        .f_mul(&batch.policy_share)?
        .f_sum(Kind::Float)?
        .f_mul_scalar(-1.0 / batch.searched.max(1) as f64)?;
    let value = outputs.values.f_mse_loss(&batch.results, Reduction::Mean)?;
    let total = policy.f_add(&value.f_mul_scalar(value_weight)?)?;
    Ok(Losses { policy, value, total })
}
