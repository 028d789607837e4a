//! The loss, as in AlphaZero and dlchess: cross-entropy with the visit distribution, over all logits, plus the mean
//! squared error of the value. A network that predicts the probabilities of win, draw and loss is trained by their cross-entropy
//! instead. The optimiser applies the weight decay.
//!
//! In the fish-eye network the softmax is over the candidates of each position, and the value, a sigmoid, is trained by binary
//! cross-entropy. Cross-entropy and squared error have the same minimum, the mean. But most positions of unsolved problems
//! have the value 0, where the sigmoid is flat: with squared error, a network that always predicts 0 would get almost no
//! gradient from the few positions with another value.

use config::LearnerConfig;
use tch::{Kind, Reduction, Tensor};

use crate::{
    data::targets::{CandidateTensors, PolicyTargets, Targets},
    network::{Outputs, ValueLogits},
    torch::TorchError,
};

/// The parts of a loss, scalars on the device.
#[derive(Debug)]
pub struct Losses {
    /// Mean cross-entropy over the samples that have a policy target, in nats.
    pub policy: Tensor,
    /// Value loss, mean over all samples: squared error, or cross-entropy in nats.
    pub value: Tensor,
    /// Mean squared error of the value, if `value` is a cross-entropy of win, draw and loss. Not trained.
    pub squared_error: Option<Tensor>,
    /// Sum of policy loss and weighted value loss.
    pub total: Tensor,
}

/// Computes the losses of a batch.
///
/// # Errors
/// [`TorchError`], also if the batch has no outcomes and the network predicts them.
pub fn losses(outputs: &Outputs, targets: &Targets, weights: &LearnerConfig) -> Result<Losses, TorchError> {
    let log_probabilities = match &targets.candidates {
        None => outputs.logits.f_log_softmax(-1, Kind::Float)?,
        Some(candidates) => choice_log_probabilities(&outputs.logits, candidates)?,
    };
    let policy = cross_entropy(&log_probabilities, &targets.policy)?;
    let (value, squared_error) = value_loss(outputs, targets)?;
    let total = policy.f_add(&value.f_mul_scalar(weights.value_weight)?)?;
    Ok(Losses {
        policy,
        value,
        squared_error,
        total,
    })
}

/// Returns the value loss that is trained, and the squared error if that is another loss.
fn value_loss(outputs: &Outputs, targets: &Targets) -> Result<(Tensor, Option<Tensor>), TorchError> {
    let squared_error = || outputs.values.f_mse_loss(&targets.results, Reduction::Mean);
    Ok(match &outputs.value_logits {
        None => (squared_error()?, None),
        Some(ValueLogits::Sigmoid(logits)) => {
            let loss = logits.f_binary_cross_entropy_with_logits(
                &targets.results,
                None::<&Tensor>,
                None::<&Tensor>,
                Reduction::Mean,
            )?;
            (loss, None)
        }
        Some(ValueLogits::Outcomes(logits)) => {
            let truth = targets.outcomes.as_ref().ok_or_else(|| {
                TorchError::new("the batch has no outcomes, which the network's value head needs")
            })?;
            let each = logits.f_log_softmax(1, Kind::Float)?.f_mul(truth)?;
            let loss = each
                .f_sum_dim_intlist([1i64].as_slice(), false, Kind::Float)?
                .f_mean(Kind::Float)?
                .f_neg()?;
            (loss, Some(squared_error()?.f_detach()?))
        }
    })
}

/// Returns the mean cross-entropy over the samples that have a target. Gathering the few searched actions costs less than a dense
/// target (chess has 4,672 logits).
fn cross_entropy(log_probabilities: &Tensor, targets: &PolicyTargets) -> Result<Tensor, TorchError> {
    Ok(log_probabilities
        .f_flatten(0, -1)?
        .f_gather(0, &targets.at, false)?
        .f_mul(&targets.share)?
        .f_sum(Kind::Float)?
        .f_mul_scalar(-1.0 / targets.samples.max(1) as f64)?)
}

/// Returns the log-probabilities `[batch, width]` of each sample's candidates. Places after a sample's last candidate hold -∞.
fn choice_log_probabilities(logits: &Tensor, candidates: &CandidateTensors) -> Result<Tensor, TorchError> {
    let own = logits.f_flatten(0, -1)?.f_gather(0, &candidates.logits, false)?;
    let [batch, width] = candidates.shape;
    let empty = Tensor::f_full([batch * width], f64::NEG_INFINITY, (Kind::Float, logits.device()))?;
    Ok(empty
        .f_scatter(0, &candidates.places, &own)?
        .f_view([batch, width])?
        .f_log_softmax(-1, Kind::Float)?)
}
