//! A network of any shape with its variables.

use onnx::{FishEyeWeights, TowerWeights};
use tch::{Device, Tensor};

use super::{
    NetworkShape, Pass, Variables, auxiliary::AuxiliaryHead, declarations::declarations, fish_eye::FishEye,
    inputs::Inputs, layers::Source, tower::Tower,
};
use crate::torch::TorchError;

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
    /// Outputs of the auxiliary heads: logits f32 `[batch, actions]` from the side of the player to act, or numbers f32 `[batch]` above 0.
    pub auxiliary: Vec<(&'static AuxiliaryHead, Tensor)>,
}

/// Logits from which values are computed.
#[derive(Debug)]
pub enum ValueLogits {
    /// The value is the sigmoid of f32 `[batch]`.
    Sigmoid(Tensor),
    /// The value is win - loss of the softmax of f32 `[batch, 3]`: win, draw and loss.
    Outcomes(Tensor),
}

/// A network as the ONNX writer takes it.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded {
    /// A tower, its normalisations folded into the convolutions.
    Tower(Box<TowerWeights>),
    /// A fish-eye network.
    FishEye(Box<FishEyeWeights>),
}

impl Network {
    /// A new network on `device`; the same seed gives the same one.
    ///
    /// # Errors
    /// [`TorchError`], e.g. where the device has no memory.
    pub fn new(shape: &NetworkShape, seed: u64, device: Device) -> Result<Self, TorchError> {
        let variables = Variables::new(&declarations(shape, seed), device)?;
        let mut source = Source(variables.by_name());
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

    /// Its sizes.
    pub fn shape(&self) -> &NetworkShape {
        &self.shape
    }

    /// Its variables.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// Its variables, to be trained or loaded.
    pub fn variables_mut(&mut self) -> &mut Variables {
        &mut self.variables
    }

    /// Evaluates positions that are on the network's device.
    ///
    /// # Errors
    /// [`TorchError`] where the inputs are another network's, the sides do not fit or the device has no memory.
    pub fn forward(&self, inputs: &Inputs, pass: Pass) -> Result<Outputs, TorchError> {
        match (&self.layers, inputs) {
            (Layers::Tower(tower), Inputs::Planes(planes)) => tower.forward(planes, pass),
            (Layers::FishEye(fish_eye), Inputs::FishEye(inputs)) => fish_eye.forward(inputs, pass),
            (Layers::Tower(_), Inputs::FishEye(_)) | (Layers::FishEye(_), Inputs::Planes(_)) => {
                Err(TorchError::new("these are inputs of another network"))
            }
        }
    }

    /// The network as the ONNX writer takes it.
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
