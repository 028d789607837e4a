//! The optimiser: its own implementation, since torch's C++ optimisers cannot be saved through tch.
//!
//! | module | what it is for |
//! |---|---|
//! | [`rules`] | one step of SGD with Nesterov momentum and of AdamW |
//! | [`schedule`] | the learning rate by step |
//!
//! The state lies in flat tensors parallel to [`Run`]s; in `optimizer.safetensors` it
//! stands by variable, as `<moment>/<variable>`.

pub mod rules;
pub mod schedule;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tch::Tensor;

use crate::{
    network::{Variables, variables::Run},
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
    /// For each run of variables the rule's moments, flat.
    moments: [Vec<Tensor>; 2],
}

/// What of the optimiser is no tensor; stored with each checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OptimizerState {
    /// The rule's name.
    pub rule: String,
    /// Updates made with this state.
    pub updates: u64,
}

impl Optimizer {
    /// An optimiser that has made no update yet.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(rule: Rule, weight_decay: f64, variables: &Variables) -> Result<Self, TorchError> {
        let zeros = |run: &Run| -> Result<Vec<Tensor>, TorchError> {
            rule.moments()
                .iter()
                .map(|_| Ok(run.flat.f_zeros_like()?))
                .collect()
        };
        let [weights, others] = variables.runs();
        Ok(Self {
            rule,
            weight_decay,
            updates: 0,
            moments: [zeros(weights)?, zeros(others)?],
        })
    }

    /// What of the state is no tensor.
    pub fn state(&self) -> OptimizerState {
        OptimizerState {
            rule: self.rule.name().to_owned(),
            updates: self.updates,
        }
    }

    /// Changes the variables by one step along `gradients`, flat and parallel to the runs.
    ///
    /// # Errors
    /// [`TorchError`]; the variables are not to be used then.
    pub fn step(
        &mut self,
        variables: &mut Variables,
        gradients: [Tensor; 2],
        learning_rate: f64,
    ) -> Result<(), TorchError> {
        let _guard = tch::no_grad_guard();
        self.updates += 1;
        for ((run, moments), gradient) in variables
            .runs_mut()
            .iter_mut()
            .zip(&mut self.moments)
            .zip(gradients)
        {
            let decay = if run.decays { self.weight_decay } else { 0.0 };
            let step = rules::Step {
                learning_rate,
                decay,
                updates: self.updates,
            };
            self.rule.apply(&mut run.flat, moments, gradient, step)?;
        }
        Ok(())
    }

    /// The state by variable, in a fixed order.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn to_host(&self, variables: &Variables) -> Result<Vec<HostTensor>, TorchError> {
        let mut tensors = Vec::new();
        for (run, moments) in variables.runs().iter().zip(&self.moments) {
            for (moment, flat) in self.rule.moments().iter().zip(moments) {
                for part in &run.parts {
                    tensors.push(HostTensor {
                        name: format!("{moment}/{}", part.name),
                        sides: part.sides.clone(),
                        numbers: to_host(&part.of(flat)?)?,
                    });
                }
            }
        }
        Ok(tensors)
    }

    /// Restores a state made by the same rule for the same variables. All is checked before anything changes.
    ///
    /// # Errors
    /// [`TensorsError`] where a tensor is missing, unknown or of another size.
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
        for (run, moments) in variables.runs().iter().zip(&mut restored) {
            for moment in self.rule.moments() {
                let mut numbers = Vec::with_capacity(run.flat.numel());
                for part in &run.parts {
                    let name = format!("{moment}/{}", part.name);
                    let found = given
                        .remove(name.as_str())
                        .ok_or(TensorsError::Missing { name })?;
                    found.check_sides(&part.sides)?;
                    numbers.extend_from_slice(&found.numbers);
                }
                let sides = [numbers.len() as i64];
                moments.push(from_host(&numbers, &sides, variables.device())?);
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

/// Puts the gradients of a run's variables one after another, as the run itself lies.
///
/// # Errors
/// [`TorchError`].
pub fn flatten(gradients: &[Tensor]) -> Result<Tensor, TorchError> {
    let flat = gradients
        .iter()
        .map(|gradient| gradient.f_flatten(0, -1))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Tensor::f_cat(&flat, 0)?)
}
