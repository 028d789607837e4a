//! [`Network`]: a network of any shape with its variables.

use onnx::{FishEyeWeights, TowerWeights};
use tch::{Device, Tensor};

use super::{
    NetworkShape, Pass, Variables, declarations::declarations, fish_eye::FishEye, inputs::Inputs,
    layers::NamedTensors, tower::Tower,
};
use crate::torch::TorchError;

/// Outputs of a forward pass.
#[derive(Debug)]
pub struct Outputs {
    /// Policy logits, f32 `[batch, actions]`. The fish-eye network gives `[parts, moves]`, the parts of all positions back to
    /// back.
    pub logits: Tensor,
    /// Values from the view of the player to act, f32 `[batch]`: in [-1, 1], or in [0, 1] in the fish-eye network.
    pub values: Tensor,
    /// Logits from which the values are computed, if the loss of the value is a function of them.
    pub value_logits: Option<ValueLogits>,
}

/// Logits from which values are computed.
#[derive(Debug)]
pub enum ValueLogits {
    /// The value is the sigmoid of f32 `[batch]`.
    Sigmoid(Tensor),
    /// The value is win - loss of the softmax of f32 `[batch, 3]`: win, draw and loss.
    Outcomes(Tensor),
}

/// A network with its variables.
#[derive(Debug)]
pub struct Network {
    shape: NetworkShape,
    variables: Variables,
    layers: Layers,
}

#[derive(Debug)]
enum Layers {
    Tower(Box<Tower>),
    FishEye(Box<FishEye>),
}

/// Error: a network cannot begin with given weights.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The run's network is not a tower.
    #[error("only a tower can begin with the weights of a file, and this game has the fish-eye network")]
    NoTower,
    /// The weights are those of a tower of other sizes.
    #[error("[model] must have the sizes of that network: {}", .0.join("; ").replace(", was ", ", [model] has "))]
    Shape(Vec<String>),
    /// A torch operation failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
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

    /// Returns the network's sizes.
    pub fn shape(&self) -> &NetworkShape {
        &self.shape
    }

    /// Returns the network's variables.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Returns the network's variables, to be trained or loaded.
    pub fn variables_mut(&mut self) -> &mut Variables {
        &mut self.variables
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
    /// [`StartError::Shape`] with the differences if the network has other sizes; nothing has changed then.
    pub fn begin_with(&mut self, weights: &TowerWeights) -> Result<(), StartError> {
        let Layers::Tower(tower) = &self.layers else {
            return Err(StartError::NoTower);
        };
        let found = NetworkShape::Tower(weights.shape);
        let differences = found.differences(&self.shape);
        if !differences.is_empty() {
            return Err(StartError::Shape(differences));
        }
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
