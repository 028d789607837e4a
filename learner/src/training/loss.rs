//! The loss, as in AlphaZero and dlchess: cross-entropy with the visit distribution, over all logits, plus the mean
//! squared error of the value. A network that predicts the probabilities of win, draw and loss is trained by their cross-entropy
//! instead. The optimiser applies the weight decay.
//!
//! In the fish-eye network the softmax is over the candidates of each position, and the value, a sigmoid, is trained by binary
//! cross-entropy. Cross-entropy and squared error have the same minimum, the mean. But most positions of unsolved problems
//! have the value 0, where the sigmoid is flat: with squared error, a network that always predicts 0 would get almost no
//! gradient from the few positions with another value.

use tch::{Kind, Reduction, Tensor};

use crate::{
    data::targets::{CandidateTensors, PolicyTargets, Targets},
    network::{Outputs, POLICY, VALUE, ValueForm},
    torch::TorchError,
};

/// Name of the value's squared error, if the value is trained by a cross-entropy.
const SQUARED_ERROR: &str = "value_squared_error";

/// One term of the loss.
#[derive(Debug)]
pub struct Term {
    /// Name, e.g. `policy`: the head's name in metrics and in files.
    pub name: &'static str,
    /// Weight in the sum that is trained; `None`: the term is only reported.
    pub weight: Option<f64>,
    /// The unweighted loss, a scalar on the device.
    pub loss: Tensor,
}

/// Computes the terms of a batch's loss: the mean cross-entropy of the policy over the samples that have a policy target, in nats; the
/// mean loss of the value over all samples; and of a head of outcomes the squared error of the value too, which is not trained.
///
/// # Errors
/// [`TorchError`], also if the batch has no outcomes and the network predicts them.
pub fn terms(outputs: &Outputs, targets: &Targets) -> Result<Vec<Term>, TorchError> {
    let logits = outputs.head(POLICY)?;
    let log_probabilities = match &targets.candidates {
        None => logits.f_log_softmax(-1, Kind::Float)?,
        Some(candidates) => choice_log_probabilities(logits, candidates)?,
    };
    let squared_error = || outputs.values.f_mse_loss(&targets.results, Reduction::Mean);
    let output = outputs.head(VALUE)?;
    let value = match outputs.value_form {
        ValueForm::Tanh => squared_error()?,
        ValueForm::Sigmoid => output.f_flatten(0, -1)?.f_binary_cross_entropy_with_logits(
            &targets.results,
            None::<&Tensor>,
            None::<&Tensor>,
            Reduction::Mean,
        )?,
        ValueForm::Outcomes => {
            let truth = targets.outcomes.as_ref().ok_or_else(|| {
                TorchError::new("the batch has no outcomes, which the network's value head needs")
            })?;
            output
                .f_log_softmax(1, Kind::Float)?
                .f_mul(truth)?
                .f_sum_dim_intlist([1i64].as_slice(), false, Kind::Float)?
                .f_mean(Kind::Float)?
                .f_neg()?
        }
    };
    let term = |name, weight, loss| Term { name, weight, loss };
    let mut terms = vec![
        term(
            POLICY,
            Some(1.0),
            cross_entropy(&log_probabilities, &targets.policy)?,
        ),
        term(VALUE, Some(1.0), value),
    ];
    if outputs.value_form == ValueForm::Outcomes {
        terms.push(term(SQUARED_ERROR, None, squared_error()?.f_detach()?));
    }
    Ok(terms)
}

/// Returns the weighted sum of the terms.
///
/// # Errors
/// [`TorchError`], e.g. if the device has no memory.
pub fn total(terms: &[Term]) -> Result<Tensor, TorchError> {
    let trained = terms.iter().filter_map(|term| Some((term.weight?, &term.loss)));
    let weighted = trained.map(|(weight, loss)| Ok(loss.f_mul_scalar(weight)?));
    let weighted = weighted.collect::<Result<Vec<_>, TorchError>>()?;
    Ok(Tensor::f_stack(&weighted, 0)?.f_sum(Kind::Float)?)
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
