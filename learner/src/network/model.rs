//! A network of any shape with its variables.

use onnx::{FishEyeWeights, TowerWeights};
use tch::{Device, Tensor};

use super::{
    NetworkShape, Pass, Variables, auxiliary::AuxiliaryHead, declarations::declarations, fish_eye::FishEye,
    layers::Source, tower::Tower,
};
use crate::{data::inputs::Inputs, torch::TorchError};

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

/// What a forward pass gives.
#[derive(Debug)]
pub struct Outputs {
    /// f32 `[batch, actions]`; over clans `[imps, moves]`, the imps of all positions one after another.
    pub logits: Tensor,
    /// f32 `[batch]`: in [-1, 1], the view of the player to act; over clans in [0, 1].
    pub values: Tensor,
    /// What the values are made of, where their loss is taken there.
    pub value_logits: Option<ValueLogits>,
    /// Outputs of the auxiliary heads: logits f32 `[batch, actions]` from the side of the player to act, or numbers f32 `[batch]` above 0.
    pub auxiliary: Vec<(&'static AuxiliaryHead, Tensor)>,
}

/// What values are made of.
#[derive(Debug)]
pub enum ValueLogits {
    /// f32 `[batch]`: they are the sigmoid of it.
    Sigmoid(Tensor),
    /// f32 `[batch, 3]`: win - loss of its softmax, win, draw and loss.
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
            (Layers::FishEye(fish_eye), Inputs::Clans(clans)) => fish_eye.forward(clans, pass),
            (Layers::Tower(_), Inputs::Clans(_)) => Err(TorchError::new("a tower takes planes, not clans")),
            (Layers::FishEye(_), Inputs::Planes(_)) => {
                Err(TorchError::new("a fish-eye network takes clans, not planes"))
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
