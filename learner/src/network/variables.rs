//! A network's variables as tensors.
//!
//! The trainable ones are views into two flat tensors, one with and one without weight decay, so that an optimiser's
//! step is a handful of operations however many layers there are.

use std::collections::HashMap;

use tch::{Device, Kind, Tensor};

use super::declarations::{Declaration, Purpose};
use crate::torch::{
    TorchError, from_host,
    tensor_files::{HostTensor, TensorsError},
    to_host,
};

/// Trainable variables that the optimiser treats alike, one after another in one tensor.
#[derive(Debug)]
pub struct Run {
    /// All of them, `[numbers]`.
    pub flat: Tensor,
    /// Whether weight decay applies.
    pub decays: bool,
    /// Name, sides and offset of each, in order.
    pub parts: Vec<Part>,
    /// The same memory, one tensor for each part; these are what gradients are taken by.
    pub views: Vec<Tensor>,
}

/// One variable within a [`Run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The variable's name.
    pub name: String,
    /// Its sides.
    pub sides: Vec<i64>,
    /// Where it begins in the flat tensor.
    pub offset: i64,
    /// Numbers it has.
    pub length: i64,
}

/// All variables of a network.
#[derive(Debug)]
pub struct Variables {
    runs: [Run; 2],
    statistics: Vec<(String, Tensor)>,
    device: Device,
}

impl Variables {
    /// Makes the variables on `device`, with the declared values.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(declarations: &[Declaration], device: Device) -> Result<Self, TorchError> {
        let statistics = declarations
            .iter()
            .filter(|declared| declared.purpose == Purpose::Statistic)
            .map(|declared| {
                Ok((
                    declared.name.clone(),
                    from_host(&declared.values, &declared.sides, device)?,
                ))
            })
            .collect::<Result<_, TorchError>>()?;
        Ok(Self {
            runs: [
                Run::new(declarations, Purpose::Weight, device)?,
                Run::new(declarations, Purpose::Plain, device)?,
            ],
            statistics,
            device,
        })
    }

    /// Where the variables are.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The trainable variables: those with weight decay, those without.
    pub fn runs(&self) -> &[Run; 2] {
        &self.runs
    }

    /// As [`Variables::runs`], to be changed.
    pub fn runs_mut(&mut self) -> &mut [Run; 2] {
        &mut self.runs
    }

    /// Number of trainable numbers.
    pub fn parameters(&self) -> usize {
        self.runs.iter().map(|run| run.flat.numel()).sum()
    }

    /// Every variable by name; the tensors share their memory with these.
    pub fn by_name(&self) -> HashMap<&str, Tensor> {
        self.named()
            .map(|(name, tensor)| (name, tensor.shallow_clone()))
            .collect()
    }

    /// Copies every variable to the host, in a fixed order.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn to_host(&self) -> Result<Vec<HostTensor>, TorchError> {
        self.named()
            .map(|(name, tensor)| {
                Ok(HostTensor {
                    name: name.to_owned(),
                    sides: tensor.size(),
                    numbers: to_host(tensor)?,
                })
            })
            .collect()
    }

    /// Overwrites every variable. All are checked before the first is changed.
    ///
    /// # Errors
    /// [`TensorsError`] where one is missing, unknown or of another size.
    pub fn load(&mut self, tensors: &[HostTensor]) -> Result<(), TensorsError> {
        let given: HashMap<&str, &HostTensor> = tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor))
            .collect();
        let mut pairs = Vec::with_capacity(given.len());
        for (name, tensor) in self.named() {
            let found = *given.get(name).ok_or_else(|| TensorsError::Missing {
                name: name.to_owned(),
            })?;
            found.check_sides(&tensor.size())?;
            pairs.push((tensor.shallow_clone(), found));
        }
        if pairs.len() != given.len() {
            let known = self.by_name();
            let unknown = given.keys().find(|name| !known.contains_key(*name));
            return Err(TensorsError::Unknown {
                name: (*unknown.unwrap_or(&"")).to_owned(),
            });
        }
        let _guard = tch::no_grad_guard();
        for (mut tensor, found) in pairs {
            let numbers = from_host(&found.numbers, &found.sides, self.device)?;
            tensor.f_copy_(&numbers).map_err(TorchError::from)?;
        }
        Ok(())
    }

    /// Moves every variable, running statistics included, by `share` (0 to 1) of the way to those of a network of the same shape.
    ///
    /// # Errors
    /// [`TorchError`] where the shapes differ.
    pub fn approach(&mut self, others: &Self, share: f64) -> Result<(), TorchError> {
        let _guard = tch::no_grad_guard();
        for (run, other) in self.runs.iter_mut().zip(&others.runs) {
            let _ = run.flat.f_lerp_(&other.flat, share)?;
        }
        for ((_, tensor), (_, other)) in self.statistics.iter_mut().zip(&others.statistics) {
            let _ = tensor.f_lerp_(other, share)?;
        }
        Ok(())
    }

    fn named(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let trained = self.runs.iter().flat_map(|run| {
            run.parts
                .iter()
                .zip(&run.views)
                .map(|(part, view)| (part.name.as_str(), view))
        });
        let statistics = self
            .statistics
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor));
        trained.chain(statistics)
    }
}

impl Run {
    fn new(declarations: &[Declaration], purpose: Purpose, device: Device) -> Result<Self, TorchError> {
        let mut numbers = Vec::new();
        let mut parts = Vec::new();
        for declared in declarations.iter().filter(|declared| declared.purpose == purpose) {
            parts.push(Part {
                name: declared.name.clone(),
                sides: declared.sides.clone(),
                offset: numbers.len() as i64,
                length: declared.values.len() as i64,
            });
            numbers.extend_from_slice(&declared.values);
        }
        let _guard = tch::no_grad_guard();
        let flat = from_host(&numbers, &[numbers.len() as i64], device)?.f_to_kind(Kind::Float)?;
        let views = parts
            .iter()
            .map(|part| Ok(part.of(&flat)?.f_set_requires_grad(true)?))
            .collect::<Result<_, TorchError>>()?;
        Ok(Self {
            flat,
            decays: purpose == Purpose::Weight,
            parts,
            views,
        })
    }
}

impl Part {
    /// This variable's share of a flat tensor, in its own sides; the memory is shared.
    ///
    /// # Errors
    /// [`TorchError`] where the flat tensor is too short.
    pub fn of(&self, flat: &Tensor) -> Result<Tensor, TorchError> {
        Ok(flat
            .f_narrow(0, self.offset, self.length)?
            .f_view(self.sides.as_slice())?)
    }
}
