//! One step of each rule over flat tensors. Tests compare both rules with torch's own optimisers.

use tch::Tensor;

use crate::torch::TorchError;

/// Share of the old velocity that SGD keeps, and Adam's decay of the mean gradient.
const MOMENTUM: f64 = 0.9;
/// Adam's decay of the mean squared gradient.
const SECOND_DECAY: f64 = 0.999;
/// Number that is added to the root of Adam's second moment.
const EPSILON: f64 = 1e-8;

/// Rule by which gradients change variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Stochastic gradient descent with Nesterov momentum (Sutskever et al., 2013); weight decay is added to the gradient.
    Sgd,
    /// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
    AdamW,
}

/// Numbers that a step depends on, besides gradients and state.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight decay of these variables.
    pub decay: f64,
    /// Updates made with this state, this one included.
    pub updates: u64,
}

impl Rule {
    /// Returns the name of the rule in checkpoints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::AdamW => "adamw",
        }
    }

    /// Returns the names of the moments that the rule keeps for each variable.
    pub fn moments(self) -> &'static [&'static str] {
        match self {
            Self::Sgd => &["velocity"],
            Self::AdamW => &["mean", "square"],
        }
    }

    /// Changes `flat` and its moments by one step. Overwrites the gradient.
    ///
    /// # Errors
    /// [`TorchError`] if the device fails.
    pub fn apply(
        self,
        flat: &mut Tensor,
        moments: &mut [Tensor],
        mut gradient: Tensor,
        step: Step,
    ) -> Result<(), TorchError> {
        match (self, moments) {
            (Self::Sgd, [velocity]) => {
                if step.decay != 0.0 {
                    let _ = gradient.f_add_(&flat.f_mul_scalar(step.decay)?)?;
                }
                let _ = velocity.f_mul_scalar_(MOMENTUM)?.f_add_(&gradient)?;
                let _ = gradient.f_add_(&velocity.f_mul_scalar(MOMENTUM)?)?;
                let _ = flat.f_sub_(&gradient.f_mul_scalar_(step.learning_rate)?)?;
            }
            (Self::AdamW, [mean, square]) => {
                let exponent = i32::try_from(step.updates).unwrap_or(i32::MAX);
                let first_bias = 1.0 - MOMENTUM.powi(exponent);
                let second_bias = 1.0 - SECOND_DECAY.powi(exponent);
                if step.decay != 0.0 {
                    let _ = flat.f_mul_scalar_(1.0 - step.learning_rate * step.decay)?;
                }
                let _ = mean.f_lerp_(&gradient, 1.0 - MOMENTUM)?;
                let _ = square.f_lerp_(&gradient.f_mul(&gradient)?, 1.0 - SECOND_DECAY)?;
                let mut divisor = square.f_sqrt()?;
                let _ = divisor
                    .f_mul_scalar_(1.0 / second_bias.sqrt())?
                    .f_add_scalar_(EPSILON)?;
                let mut change = mean.f_div(&divisor)?;
                let _ = flat.f_sub_(&change.f_mul_scalar_(step.learning_rate / first_bias)?)?;
            }
            (rule, moments) => {
                return Err(TorchError::new(&format!(
                    "{} with {} moments",
                    rule.name(),
                    moments.len()
                )));
            }
        }
        Ok(())
    }
}
