//! Weights of a network as plain vectors, layer by layer, with batch normalisation folded into the convolutions.

use crate::file::OnnxError;

/// Kind of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Convolution over the board with a kernel of this side (1 or 3), stride 1, padded so that the board keeps its size.
    /// Weights `[outputs][inputs][kernel][kernel]`.
    Conv(usize),
    /// Fully connected layer. Weights `[outputs][inputs]`, torch's order.
    Linear,
    /// Fully connected layer that a file holds as a convolution over a board of one square.
    LinearAsConv,
    /// Table of `outputs` rows with `inputs` numbers each, without biases.
    Table,
}

/// Name and sizes of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Name, e.g. `block2.first`. A file holds the tensors `<name>.weight` and `<name>.bias`.
    pub name: String,
    /// Kind of the layer.
    pub kind: Kind,
    /// Number of outputs.
    pub outputs: usize,
    /// Number of inputs.
    pub inputs: usize,
}

impl LayerShape {
    /// Describes a layer.
    pub fn new(name: impl Into<String>, kind: Kind, outputs: usize, inputs: usize) -> Self {
        Self {
            name: name.into(),
            kind,
            outputs,
            inputs,
        }
    }

    /// Returns the dimensions of the weights.
    pub fn dims(&self) -> Vec<usize> {
        let mut dims = vec![self.outputs, self.inputs];
        match self.kind {
            Kind::Conv(side) => dims.extend([side, side]),
            Kind::LinearAsConv => dims.extend([1, 1]),
            Kind::Linear | Kind::Table => {}
        }
        dims
    }

    /// Returns the number of weights of an output.
    pub fn taps(&self) -> usize {
        match self.kind {
            Kind::Conv(side) => self.inputs * side * side,
            Kind::Linear | Kind::LinearAsConv | Kind::Table => self.inputs,
        }
    }

    /// Returns the number of biases.
    pub fn biases(&self) -> usize {
        match self.kind {
            Kind::Table => 0,
            Kind::Conv(_) | Kind::Linear | Kind::LinearAsConv => self.outputs,
        }
    }
}

/// A layer with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name and sizes.
    pub shape: LayerShape,
    /// Weights, row-major; [`Kind`] says in which order.
    pub weights: Vec<f32>,
    /// Biases, `[outputs]`.
    pub bias: Vec<f32>,
}

/// Layer of a name that a network does not have.
static NO_LAYER: Layer = Layer {
    shape: LayerShape {
        name: String::new(),
        kind: Kind::Linear,
        outputs: 0,
        inputs: 0,
    },
    weights: Vec::new(),
    bias: Vec::new(),
};

/// Weights of a network whose sizes are `S`.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights<S> {
    /// Sizes of the network.
    pub shape: S,
    /// All layers, in the order of the shape's list.
    pub layers: Vec<Layer>,
}

impl<S> Weights<S> {
    /// Returns the layer of this name; an empty layer if there is none, which a check of the weights excludes.
    pub fn layer(&self, name: &str) -> &Layer {
        let mut layers = self.layers.iter();
        layers.find(|layer| layer.shape.name == name).unwrap_or(&NO_LAYER)
    }

    /// Returns the layer of this name, to be changed.
    pub fn layer_mut(&mut self, name: &str) -> Option<&mut Layer> {
        self.layers.iter_mut().find(|layer| layer.shape.name == name)
    }

    /// Returns the number of weights and biases.
    pub fn parameters(&self) -> usize {
        let counts = self
            .layers
            .iter()
            .map(|layer| layer.weights.len() + layer.bias.len());
        counts.sum()
    }

    /// Checks that the layers are those of a list, and that every number is finite.
    ///
    /// # Errors
    /// [`OnnxError`] that names the first layer that does not fit.
    pub(crate) fn check_layers(&self, expected: &[LayerShape]) -> Result<(), OnnxError> {
        if self.layers.len() != expected.len() {
            let (found, expected) = (self.layers.len(), expected.len());
            return Err(OnnxError::new(format!("{found} layers, {expected} expected")));
        }
        for (layer, shape) in self.layers.iter().zip(expected) {
            let name = &shape.name;
            if layer.shape != *shape || shape.outputs == 0 || shape.inputs == 0 {
                return Err(OnnxError::new(format!(
                    "{name}: the layer is {:?} instead of {shape:?}",
                    layer.shape
                )));
            }
            for (what, found, expected) in [
                ("weights", layer.weights.len(), shape.outputs * shape.taps()),
                ("biases", layer.bias.len(), shape.biases()),
            ] {
                if found != expected {
                    return Err(OnnxError::new(format!(
                        "{name}: {found} {what}, {expected} expected"
                    )));
                }
            }
            if layer
                .weights
                .iter()
                .chain(&layer.bias)
                .any(|number| !number.is_finite())
            {
                return Err(OnnxError::NotFinite(name.clone()));
            }
        }
        Ok(())
    }
}
