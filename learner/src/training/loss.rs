//! The loss, as in AlphaZero and dlchess: cross-entropy with the visit distribution, over all logits, plus the mean
//! squared error of the value. A network that predicts the probabilities of win, draw and loss is trained by their cross-entropy
//! instead. The optimiser applies the weight decay.
//!
//! A network with a head for the territory is also trained towards the owners of the squares at the end of the game, by cross-entropy, and
//! towards the score, by squared error (Wu 2019, section 4.1). Both are means over the samples whose games have a territory.
//!
//! In the fish-eye network the softmax is over the candidates of each position, and the value, a sigmoid, is trained by binary
//! cross-entropy. Cross-entropy and squared error have the same minimum, the mean. But most positions of unsolved problems
//! have the value 0, where the sigmoid is flat: with squared error, a network that always predicts 0 would get almost no
//! gradient from the few positions with another value.

use tch::{Kind, Reduction, Tensor};

use crate::{
    data::targets::{CandidateTensors, PolicyTargets, Targets, TerritoryTargets},
    network::{Outputs, POLICY, TERRITORY, VALUE, ValueForm},
    torch::TorchError,
};

/// Name of the value's squared error, if the value is trained by a cross-entropy.
const SQUARED_ERROR: &str = "value_squared_error";

/// Name of the loss of the score.
const SCORE: &str = "score";

/// Weight of the cross-entropy of a square's owner, averaged over the squares, as in KataGo (Wu 2019, appendix A).
const TERRITORY_WEIGHT: f64 = 1.5;
/// Weight of the squared error of the score, which is in units of the number of squares, where it is at most 4.
const SCORE_WEIGHT: f64 = 0.5;

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
/// mean loss of the value over all samples; of a head of outcomes the squared error of the value too, which is not trained; and of a
/// head for the territory its cross-entropy and the squared error of the score.
///
/// # Errors
/// [`TorchError`], also if the batch lacks outcomes or territories and the network predicts them.
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
    if let Some(output) = outputs.heads.get(TERRITORY) {
        let targets = targets
            .territories
            .as_ref()
            .ok_or_else(|| TorchError::new("the batch has no territories, which the network's head needs"))?;
        let [owners, score] = territory(output, targets)?;
        terms.push(term(TERRITORY, Some(TERRITORY_WEIGHT), owners));
        terms.push(term(SCORE, Some(SCORE_WEIGHT), score));
    }
    Ok(terms)
}

/// Returns the losses of the owners and of the score; 0 if no sample has a territory.
fn territory(output: &Tensor, targets: &TerritoryTargets) -> Result<[Tensor; 2], TorchError> {
    let (samples, squares) = targets.owners.size2()?;
    let parts = output
        .f_index_select(0, &targets.samples)?
        .f_split_with_sizes([squares, 1].as_slice(), 1)?;
    let [owners, score] = parts.as_slice() else {
        return Err(TorchError::new("a split into two gave another number"));
    };
    let none = None::<&Tensor>;
    let owners = owners.f_binary_cross_entropy_with_logits(&targets.owners, none, none, Reduction::Sum)?;
    let score = score
        .f_flatten(0, -1)?
        .f_mse_loss(&targets.scores, Reduction::Sum)?;
    Ok([
        owners.f_div_scalar((samples * squares).max(1))?,
        score.f_div_scalar(samples.max(1))?,
    ])
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
