//! A network's variables as tensors.
//!
//! The trainable ones are views into two flat tensors, one with and one without weight decay, so that the optimiser's
//! number of operations does not depend on the number of layers.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use tch::{Device, Kind, Tensor};

use super::declarations::{Declaration, Purpose};
use crate::torch::{TorchError, from_host, tensor_files::HostTensor, to_host};

/// Each variable begins at a multiple of this many numbers (64 bytes) in its flat tensor: kernels of GPUs load several numbers at
/// once, and fail with `misaligned address` at other places.
const ALIGNMENT: usize = 16;

/// Trainable variables with the same weight decay, one after another in one tensor.
#[derive(Debug)]
pub struct ParameterGroup {
    /// All variables, `[numbers]`, with zeros between them.
    pub flat: Tensor,
    /// Zeros, `[ALIGNMENT]`.
    padding: Tensor,
    /// True if weight decay applies.
    pub decays: bool,
    /// Name, dimensions and offset of each variable, in order.
    pub parts: Vec<Part>,
    /// One tensor for each part, which shares the memory of `flat`. Gradients are computed for these.
    pub views: Vec<Tensor>,
}

/// One variable within a [`ParameterGroup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The variable's name.
    pub name: String,
    /// Dimensions.
    pub dims: Vec<i64>,
    /// Offset in the flat tensor.
    pub offset: i64,
    /// Number of elements.
    pub length: i64,
}

/// All variables of a network.
#[derive(Debug)]
pub struct Variables {
    /// The trainable variables: those with weight decay, then those without.
    pub groups: [ParameterGroup; 2],
    statistics: Vec<(String, Tensor)>,
    /// The device that holds the variables.
    pub device: Device,
}

impl Variables {
    /// Makes the variables on `device`, with the declared values.
    ///
    /// # Errors
    /// [`TorchError`], e.g. if the device has no memory.
    pub fn new(declarations: &[Declaration], device: Device) -> Result<Self, TorchError> {
        let statistics = declarations
            .iter()
            .filter(|declared| declared.purpose == Purpose::Statistic)
            .map(|declared| {
                Ok((
                    declared.name.clone(),
                    from_host(&declared.values, &declared.dims, device)?,
                ))
            })
            .collect::<Result<_, TorchError>>()?;
        Ok(Self {
            groups: [
                ParameterGroup::new(declarations, Purpose::Weight, device)?,
                ParameterGroup::new(declarations, Purpose::Plain, device)?,
            ],
            statistics,
            device,
        })
    }

    /// Returns the number of trainable parameters.
    pub fn parameters(&self) -> usize {
        let parts = self.groups.iter().flat_map(|group| &group.parts);
        parts.map(|part| part.length as usize).sum()
    }

    /// Returns every variable by name. The tensors share their memory with the variables.
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
                    dims: tensor.size(),
                    numbers: to_host(tensor)?,
                })
            })
            .collect()
    }

    /// Overwrites every variable. All are checked before the first is changed.
    ///
    /// # Errors
    /// A variable is missing, unknown or of another size.
    pub fn load(&mut self, tensors: &[HostTensor]) -> anyhow::Result<()> {
        let given: HashMap<&str, &HostTensor> = tensors
            .iter()
            .map(|tensor| (tensor.name.as_str(), tensor))
            .collect();
        let mut pairs = Vec::with_capacity(given.len());
        for (name, tensor) in self.named() {
            let found = *given.get(name).with_context(|| format!("`{name}` is missing"))?;
            found.check_dims(&tensor.size())?;
            pairs.push((tensor.shallow_clone(), found));
        }
        if pairs.len() != given.len() {
            let known = self.by_name();
            let unknown = given.keys().find(|name| !known.contains_key(*name));
            bail!("`{}` is not part of this network", unknown.unwrap_or(&""));
        }
        let _guard = tch::no_grad_guard();
        for (mut tensor, found) in pairs {
            let numbers = from_host(&found.numbers, &found.dims, self.device)?;
            tensor.f_copy_(&numbers)?;
        }
        Ok(())
    }

    /// Moves every variable, running statistics included, by `share` (0 to 1) of the way to those of a network of the same shape.
    ///
    /// # Errors
    /// [`TorchError`] if the shapes differ.
    pub fn approach(&mut self, others: &Self, share: f64) -> Result<(), TorchError> {
        let _guard = tch::no_grad_guard();
        for (group, other) in self.groups.iter_mut().zip(&others.groups) {
            let _ = group.flat.f_lerp_(&other.flat, share)?;
        }
        for ((_, tensor), (_, other)) in self.statistics.iter_mut().zip(&others.statistics) {
            let _ = tensor.f_lerp_(other, share)?;
        }
        Ok(())
    }

    fn named(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        let trained = self.groups.iter().flat_map(|group| {
            group
                .parts
                .iter()
                .zip(&group.views)
                .map(|(part, view)| (part.name.as_str(), view))
        });
        let statistics = self
            .statistics
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor));
        trained.chain(statistics)
    }
}

impl ParameterGroup {
    fn new(declarations: &[Declaration], purpose: Purpose, device: Device) -> Result<Self, TorchError> {
        let mut numbers = Vec::new();
        let mut parts = Vec::new();
        for declared in declarations.iter().filter(|declared| declared.purpose == purpose) {
            parts.push(Part {
                name: declared.name.clone(),
                dims: declared.dims.clone(),
                offset: numbers.len() as i64,
                length: declared.values.len() as i64,
            });
            append(&mut numbers, &declared.values);
        }
        let _guard = tch::no_grad_guard();
        let flat = from_host(&numbers, &[numbers.len() as i64], device)?.f_to_kind(Kind::Float)?;
        let views = parts
            .iter()
            .map(|part| Ok(part.of(&flat)?.f_set_requires_grad(true)?))
            .collect::<Result<_, TorchError>>()?;
        Ok(Self {
            flat,
            padding: Tensor::f_zeros([ALIGNMENT as i64], (Kind::Float, device))?,
            decays: purpose == Purpose::Weight,
            parts,
            views,
        })
    }

    /// Makes one tensor in the form of [`Self::flat`] of a tensor for each variable, in the order of the group.
    ///
    /// # Errors
    /// [`TorchError`], e.g. if the device has no memory.
    pub fn flatten(&self, tensors: &[Tensor]) -> Result<Tensor, TorchError> {
        let mut pieces = Vec::with_capacity(2 * tensors.len());
        for tensor in tensors {
            pieces.push(tensor.f_flatten(0, -1)?);
            let padding = tensor.numel().next_multiple_of(ALIGNMENT) - tensor.numel();
            if padding > 0 {
                pieces.push(self.padding.f_narrow(0, 0, padding as i64)?);
            }
        }
        Ok(Tensor::f_cat(&pieces, 0)?)
    }
}

/// Appends a variable's numbers to those of a flat tensor, and the zeros up to the next variable.
pub fn append(flat: &mut Vec<f32>, numbers: &[f32]) {
    flat.extend_from_slice(numbers);
    flat.resize(flat.len().next_multiple_of(ALIGNMENT), 0.0);
}

impl Part {
    /// Returns a view of this variable in a flat tensor.
    ///
    /// # Errors
    /// [`TorchError`] if the flat tensor is too short.
    pub fn of(&self, flat: &Tensor) -> Result<Tensor, TorchError> {
        Ok(flat
            .f_narrow(0, self.offset, self.length)?
            .f_view(self.dims.as_slice())?)
    }
}
