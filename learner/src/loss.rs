//! The loss, as in AlphaZero and dlchess: cross-entropy with the visit distribution, over all logits, plus the mean
//! squared error of the value. Weight decay is the optimiser's.
//!
//! Over clans the softmax is over the moves of all imps of the position, and the value, a sigmoid, is trained by binary
//! cross-entropy. Both have the mean as their best answer, but most positions of problems that are not solved are worth
//! 0, where a sigmoid is flat: by squared error a network that has learned to say 0 would learn next to nothing from the few
//! positions that are worth something.

use tch::{Kind, Reduction, Tensor};

use crate::{
    batches::{ChoiceTensors, Targets},
    network::Outputs,
    torch::TorchError,
};

/// The parts of a loss, scalars on the device.
#[derive(Debug)]
pub struct Losses {
    /// Mean cross-entropy over the samples that have a policy target, in nats.
    pub policy: Tensor,
    /// Mean over all samples: squared error, or binary cross-entropy in nats where values are a sigmoid.
    pub value: Tensor,
    /// `policy + value_weight · value`
    pub total: Tensor,
}

/// The losses of a batch.
///
/// # Errors
/// [`TorchError`].
pub fn losses(outputs: &Outputs, targets: &Targets, value_weight: f64) -> Result<Losses, TorchError> {
    let log_probabilities = match &targets.choices {
        None => outputs.logits.f_log_softmax(-1, Kind::Float)?,
        Some(choices) => among(&outputs.logits, choices)?,
    };
    // Gathering the few searched actions costs less than a dense target (chess has 4,672 logits).
    let policy = log_probabilities
        .f_flatten(0, -1)?
        .f_gather(0, &targets.policy_at, false)?
        .f_mul(&targets.policy_share)?
        .f_sum(Kind::Float)?
        .f_mul_scalar(-1.0 / targets.searched.max(1) as f64)?;
    let value = match &outputs.value_logits {
        None => outputs.values.f_mse_loss(&targets.results, Reduction::Mean)?,
        Some(logits) => logits.f_binary_cross_entropy_with_logits(
            &targets.results,
            None::<&Tensor>,
            None::<&Tensor>,
            Reduction::Mean,
        )?,
    };
    let total = policy.f_add(&value.f_mul_scalar(value_weight)?)?;
    Ok(Losses { policy, value, total })
}

/// Log-probabilities `[batch, width]` of each sample's choices; behind the last one of a sample there is nothing.
fn among(logits: &Tensor, choices: &ChoiceTensors) -> Result<Tensor, TorchError> {
    let own = logits.f_flatten(0, -1)?.f_gather(0, &choices.logits, false)?;
    let [batch, width] = choices.sides;
    let nothing = Tensor::f_full([batch * width], f64::NEG_INFINITY, (Kind::Float, logits.device()))?;
    Ok(nothing
        .f_scatter(0, &choices.places, &own)?
        .f_view([batch, width])?
        .f_log_softmax(-1, Kind::Float)?)
}
