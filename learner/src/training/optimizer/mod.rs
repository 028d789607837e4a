//! The optimiser. It is implemented here because the state of torch's C++ optimisers cannot be saved through tch.
//!
//! | module | contents |
//! |---|---|
//! | [`rules`] | one step of SGD with Nesterov momentum and of AdamW |
//!
//! The state consists of flat tensors, one for each [`ParameterGroup`] and moment. In `optimizer.safetensors` there is one tensor
//! for each variable and moment, `<moment>/<variable>`.

pub mod rules;

use std::collections::HashMap;

use config::LearnerConfig;
use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::{
    network::{
        Variables,
        variables::{ParameterGroup, append},
    },
    torch::{
        TorchError, from_host,
        tensor_files::{HostTensor, TensorsError},
        to_host,
    },
};
pub use rules::Rule;

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
    /// The rule's name.
    pub rule: String,
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
            rule.moments()
                .iter()
                .map(|_| Ok(group.flat.f_zeros_like()?))
                .collect()
        };
        let [weights, others] = variables.groups();
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
            rule: self.rule.name().to_owned(),
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
        for ((group, moments), gradient) in variables
            .groups_mut()
            .iter_mut()
            .zip(&mut self.moments)
            .zip(gradients)
        {
            let decay = if group.decays { self.weight_decay } else { 0.0 };
            let step = rules::Step {
                learning_rate,
                decay,
                updates: self.updates,
            };
            self.rule.apply(&mut group.flat, moments, gradient, step)?;
        }
        Ok(())
    }

    /// Copies the moments of each variable to the host, in a fixed order.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn to_host(&self, variables: &Variables) -> Result<Vec<HostTensor>, TorchError> {
        let mut tensors = Vec::new();
        for (group, moments) in variables.groups().iter().zip(&self.moments) {
            for (moment, flat) in self.rule.moments().iter().zip(moments) {
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
    /// [`TensorsError`] if a tensor is missing, unknown or of another size.
    pub fn load(
        &mut self,
        variables: &Variables,
        state: &OptimizerState,
        tensors: &[HostTensor],
    ) -> Result<(), TensorsError> {
        let mut given: HashMap<&str, &HostTensor> = tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor))
            .collect();
        let mut restored: [Vec<Tensor>; 2] = [Vec::new(), Vec::new()];
        for (group, moments) in variables.groups().iter().zip(&mut restored) {
            for moment in self.rule.moments() {
                let mut numbers = Vec::with_capacity(group.flat.numel());
                for part in &group.parts {
                    let name = format!("{moment}/{}", part.name);
                    let found = given
                        .remove(name.as_str())
                        .ok_or(TensorsError::Missing { name })?;
                    found.check_dims(&part.dims)?;
                    append(&mut numbers, &found.numbers);
                }
                let dims = [numbers.len() as i64];
                moments.push(from_host(&numbers, &dims, variables.device())?);
            }
        }
        if let Some(name) = given.keys().next() {
            return Err(TensorsError::Unknown {
                name: (*name).to_owned(),
            });
        }
        self.moments = restored;
        self.updates = state.updates;
        Ok(())
    }
}

impl From<config::Optimizer> for Rule {
    fn from(optimizer: config::Optimizer) -> Self {
        match optimizer {
            config::Optimizer::Sgd => Self::Sgd,
            config::Optimizer::Adamw => Self::AdamW,
        }
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
