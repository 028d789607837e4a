//! The optimiser: SGD with Nesterov momentum (Sutskever et al., 2013), where weight decay is added to the gradient, or AdamW, with
//! decoupled weight decay (Loshchilov and Hutter, 2019). It is implemented here because the state of torch's C++ optimisers cannot be
//! saved through tch. Tests compare both with torch's own.
//!
//! The state consists of flat tensors, one for each [`ParameterGroup`] and moment. In `optimizer.safetensors` there is one tensor
//! for each variable and moment, `<moment>/<variable>`.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use config::{LearnerConfig, Optimizer as Rule};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::{
    network::{
        Variables,
        variables::{ParameterGroup, append},
    },
    torch::{TorchError, from_host, tensor_files::HostTensor, to_host},
};

/// Share of the old velocity that SGD keeps, and Adam's decay of the mean gradient.
const MOMENTUM: f64 = 0.9;
/// Adam's decay of the mean squared gradient.
const SECOND_DECAY: f64 = 0.999;
/// Number that is added to the root of Adam's second moment.
const EPSILON: f64 = 1e-8;

/// An optimiser with its state.
#[derive(Debug)]
pub struct Optimizer {
    rule: Rule,
    weight_decay: f64,
    updates: u64,
    /// The rule's moments for each group of variables, flat.
    moments: [Vec<Tensor>; 2],
}

/// The optimiser's state without its moments. Stored with each checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptimizerState {
    /// The rule.
    pub rule: Rule,
    /// Updates made with this state.
    pub updates: u64,
}

impl Optimizer {
    /// Creates an optimiser that has made no update yet.
    ///
    /// # Errors
    /// [`TorchError`], e.g. if the device has no memory.
    pub fn new(rule: Rule, weight_decay: f64, variables: &Variables) -> Result<Self, TorchError> {
        let zeros = |group: &ParameterGroup| -> Result<Vec<Tensor>, TorchError> {
            moments_of(rule)
                .iter()
                .map(|_| Ok(group.flat.f_zeros_like()?))
                .collect()
        };
        let [weights, others] = &variables.groups;
        Ok(Self {
            rule,
            weight_decay,
            updates: 0,
            moments: [zeros(weights)?, zeros(others)?],
        })
    }

    /// Returns the state without the moments.
    pub fn state(&self) -> OptimizerState {
        OptimizerState {
            rule: self.rule,
            updates: self.updates,
        }
    }

    /// Changes the variables by one step along `gradients`, one flat tensor for each group.
    ///
    /// # Errors
    /// [`TorchError`]; the variables must not be used then.
    pub fn step(
        &mut self,
        variables: &mut Variables,
        gradients: [Tensor; 2],
        learning_rate: f64,
    ) -> Result<(), TorchError> {
        let _guard = tch::no_grad_guard();
        self.updates += 1;
        for ((group, moments), gradient) in variables.groups.iter_mut().zip(&mut self.moments).zip(gradients)
        {
            let decay = if group.decays { self.weight_decay } else { 0.0 };
            let rates = Rates {
                learning_rate,
                decay,
                updates: self.updates,
            };
            rates.apply(self.rule, &mut group.flat, moments, gradient)?;
        }
        Ok(())
    }

    /// Copies the moments of each variable to the host, in a fixed order.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn to_host(&self, variables: &Variables) -> Result<Vec<HostTensor>, TorchError> {
        let mut tensors = Vec::new();
        for (group, moments) in variables.groups.iter().zip(&self.moments) {
            for (moment, flat) in moments_of(self.rule).iter().zip(moments) {
                for part in &group.parts {
                    tensors.push(HostTensor {
                        name: format!("{moment}/{}", part.name),
                        dims: part.dims.clone(),
                        numbers: to_host(&part.of(flat)?)?,
                    });
                }
            }
        }
        Ok(tensors)
    }

    /// Restores a state of the same rule and the same variables. Checks all tensors before it changes anything.
    ///
    /// # Errors
    /// A tensor is missing, unknown or of another size.
    pub fn load(
        &mut self,
        variables: &Variables,
        state: &OptimizerState,
        tensors: &[HostTensor],
    ) -> anyhow::Result<()> {
        let mut given: HashMap<&str, &HostTensor> = tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor))
            .collect();
        let mut restored: [Vec<Tensor>; 2] = [Vec::new(), Vec::new()];
        for (group, moments) in variables.groups.iter().zip(&mut restored) {
            for moment in moments_of(self.rule) {
                let mut numbers = Vec::with_capacity(group.flat.numel());
                for part in &group.parts {
                    let name = format!("{moment}/{}", part.name);
                    let found = given
                        .remove(name.as_str())
                        .with_context(|| format!("`{name}` is missing"))?;
                    found.check_dims(&part.dims)?;
                    append(&mut numbers, &found.numbers);
                }
                let dims = [numbers.len() as i64];
                moments.push(from_host(&numbers, &dims, variables.device)?);
            }
        }
        if let Some(name) = given.keys().next() {
            bail!("`{name}` is not part of this network");
        }
        self.moments = restored;
        self.updates = state.updates;
        Ok(())
    }
}

/// Returns the names of the moments that a rule keeps for each variable.
pub fn moments_of(rule: Rule) -> &'static [&'static str] {
    match rule {
        Rule::Sgd => &["velocity"],
        Rule::Adamw => &["mean", "square"],
    }
}

/// Numbers that a step depends on, besides gradients and state.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Learning rate.
    pub learning_rate: f64,
    /// Weight decay of these variables.
    pub decay: f64,
    /// Updates made with this state, this one included.
    pub updates: u64,
}

impl Rates {
    /// Changes `flat` and its moments by one step. Overwrites the gradient.
    ///
    /// # Errors
    /// [`TorchError`] if the device fails.
    pub fn apply(
        self,
        rule: Rule,
        flat: &mut Tensor,
        moments: &mut [Tensor],
        mut gradient: Tensor,
    ) -> Result<(), TorchError> {
        match (rule, moments) {
            (Rule::Sgd, [velocity]) => {
                if self.decay != 0.0 {
                    let _ = gradient.f_add_(&flat.f_mul_scalar(self.decay)?)?;
                }
                let _ = velocity.f_mul_scalar_(MOMENTUM)?.f_add_(&gradient)?;
                let _ = gradient.f_add_(&velocity.f_mul_scalar(MOMENTUM)?)?;
                let _ = flat.f_sub_(&gradient.f_mul_scalar_(self.learning_rate)?)?;
            }
            (Rule::Adamw, [mean, square]) => {
                let exponent = i32::try_from(self.updates).unwrap_or(i32::MAX);
                let first_bias = 1.0 - MOMENTUM.powi(exponent);
                let second_bias = 1.0 - SECOND_DECAY.powi(exponent);
                if self.decay != 0.0 {
                    let _ = flat.f_mul_scalar_(1.0 - self.learning_rate * self.decay)?;
                }
                let _ = mean.f_lerp_(&gradient, 1.0 - MOMENTUM)?;
                let _ = square.f_lerp_(&gradient.f_mul(&gradient)?, 1.0 - SECOND_DECAY)?;
                let mut divisor = square.f_sqrt()?;
                let _ = divisor
                    .f_mul_scalar_(1.0 / second_bias.sqrt())?
                    .f_add_scalar_(EPSILON)?;
                let mut change = mean.f_div(&divisor)?;
                let _ = flat.f_sub_(&change.f_mul_scalar_(self.learning_rate / first_bias)?)?;
            }
            (rule, moments) => {
                return Err(TorchError::new(&format!(
                    "{rule:?} with {} moments",
                    moments.len()
                )));
            }
        }
        Ok(())
    }
}

/// Returns the learning rate of a step, counted from 0: a linear warm-up, then constant. The published weights are an average over
/// steps, which takes the place of a falling learning rate in runs without an end.
pub fn learning_rate(config: &LearnerConfig, step: u64) -> f64 {
    let warm = ((step + 1) as f64 / config.warmup_steps.max(1) as f64).min(1.0);
    config.learning_rate * warm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_rate_rises_linearly_and_then_stays() {
        let config = LearnerConfig {
            learning_rate: 0.5,
            warmup_steps: 4,
            ..LearnerConfig::default()
        };
        let rates: Vec<f64> = (0..6).map(|step| learning_rate(&config, step)).collect();
        assert_eq!(rates, [0.125, 0.25, 0.375, 0.5, 0.5, 0.5]);
        let without_warmup = LearnerConfig {
            warmup_steps: 0,
            ..config
        };
        assert_eq!(learning_rate(&without_warmup, 0), 0.5);
    }
}
