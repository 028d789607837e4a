//! [`Network`]: a network of any shape with its variables.

use std::collections::HashMap;

use anyhow::{bail, ensure};
use onnx::{FishEyeWeights, TowerWeights};
use tch::{Device, Tensor};

use super::{
    NetworkShape, Pass, Variables, declarations::declarations, fish_eye::FishEye, inputs::Inputs,
    layers::NamedTensors, tower::Tower,
};
use crate::torch::TorchError;

/// Name of the policy head.
pub const POLICY: &str = "policy";
/// Name of the value head.
pub const VALUE: &str = "value";

/// Name of the head for the territory, which only training uses.
pub const TERRITORY: &str = "territory";

/// Outputs of a forward pass.
#[derive(Debug)]
pub struct Outputs {
    /// Output of each head by its name, f32. The policy's are logits: `[batch, actions]` of a tower; `[parts, moves]` of the fish-eye
    /// network, the parts of all positions back to back. The territory's are `[batch, squares + 1]`: logits of the probability that the
    /// player to act owns each square at the end, and the score divided by the number of squares. The value's are the numbers from which [`Outputs::values`] are computed.
    pub heads: HashMap<&'static str, Tensor>,
    /// Values from the view of the player to act, f32 `[batch]`: in [-1, 1], or in [0, 1] in the fish-eye network.
    pub values: Tensor,
    /// Function by which the values are computed from the output of the value head.
    pub value_form: ValueForm,
}

impl Outputs {
    /// Returns the output of a head.
    ///
    /// # Errors
    /// [`TorchError`] if the network has no such head.
    pub fn head(&self, name: &str) -> Result<&Tensor, TorchError> {
        let found = self.heads.get(name);
        found.ok_or_else(|| TorchError::new(&format!("the network has no head `{name}`")))
    }
}

/// The function by which values are computed from the output of the value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// The value is the tanh of `[batch, 1]`.
    Tanh,
    /// The value is the sigmoid of `[batch, 1]`.
    Sigmoid,
    /// The value is win - loss of the softmax of `[batch, 3]`: win, draw and loss.
    Outcomes,
}

/// A network with its variables.
#[derive(Debug)]
pub struct Network {
    /// Sizes of the network.
    pub shape: NetworkShape,
    /// Variables of the network, which share their memory with its layers.
    pub variables: Variables,
    layers: Layers,
}

#[derive(Debug)]
enum Layers {
    Tower(Box<Tower>),
    FishEye(Box<FishEye>),
}

/// Weights of a network in the form that the ONNX writer takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded {
    /// A tower, with its normalisations folded into the convolutions.
    Tower(Box<TowerWeights>),
    /// A fish-eye network.
    FishEye(Box<FishEyeWeights>),
}

impl Network {
    /// Creates a network on `device` with weights drawn from `seed`.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(shape: &NetworkShape, seed: u64, device: Device) -> Result<Self, TorchError> {
        let variables = Variables::new(&declarations(shape, seed), device)?;
        let mut source = NamedTensors(variables.by_name());
        let layers = match shape {
            NetworkShape::Tower(shape) => Layers::Tower(Box::new(Tower::new(shape, &mut source)?)),
            NetworkShape::FishEye(shape) => Layers::FishEye(Box::new(FishEye::new(shape, &mut source)?)),
        };
        drop(source);
        Ok(Self {
            shape: shape.clone(),
            layers,
            variables,
        })
    }

    /// Evaluates positions that are on the network's device.
    ///
    /// # Errors
    /// [`TorchError`] if the inputs are of the other kind of network, dimensions do not fit, or the device has no memory.
    pub fn forward(&self, inputs: &Inputs, pass: Pass) -> Result<Outputs, TorchError> {
        match (&self.layers, inputs) {
            (Layers::Tower(tower), Inputs::Planes(planes)) => tower.forward(planes, pass),
            (Layers::FishEye(fish_eye), Inputs::FishEye(inputs)) => fish_eye.forward(inputs, pass),
            (Layers::Tower(_), Inputs::FishEye(_)) | (Layers::FishEye(_), Inputs::Planes(_)) => {
                Err(TorchError::new("these are inputs of another network"))
            }
        }
    }

    /// Overwrites the weights, so that the network computes what `weights` compute.
    ///
    /// # Errors
    /// The network has other sizes; nothing has changed then.
    pub fn begin_with(&mut self, weights: &TowerWeights) -> anyhow::Result<()> {
        let Layers::Tower(tower) = &self.layers else {
            bail!(
                "only a tower can begin with the weights of a file, and this game has the fish-eye network"
            );
        };
        let served = match &self.shape {
            NetworkShape::Tower(shape) => NetworkShape::Tower(shape.served()),
            NetworkShape::FishEye(_) => self.shape.clone(),
        };
        let differences = NetworkShape::Tower(weights.shape).differences(&served);
        ensure!(
            differences.is_empty(),
            "[model] must have the sizes of that network: {}",
            differences.join("; ").replace(", was ", ", [model] has ")
        );
        Ok(tower.unfold(weights)?)
    }

    /// Copies the weights to the host, in the form that the ONNX writer takes.
    ///
    /// # Errors
    /// [`TorchError`].
    pub fn fold(&self) -> Result<Folded, TorchError> {
        Ok(match &self.layers {
            Layers::Tower(tower) => Folded::Tower(Box::new(tower.fold()?)),
            Layers::FishEye(fish_eye) => Folded::FishEye(Box::new(fish_eye.fold()?)),
        })
    }
}
