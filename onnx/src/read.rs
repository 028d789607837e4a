//! Reads the weights of a tower back from its file: the inverse of [`crate::build`].

use std::collections::HashMap;

use crate::{
    file::{OnnxError, decode, floats},
    model::{Metadata, metadata_in},
    network::{PolicyShape, TowerShape, TowerWeights},
    weights::Layer,
};
use games::PlaneStack;

/// Reads the weights and the metadata of a tower that [`crate::build`] wrote, also one in half precision ([`crate::half`], or with a
/// cast for each tensor, as the networks that come with Minuet).
///
/// # Errors
/// [`OnnxError`], e.g. for a file of a fish-eye network or of 8-bit integers.
pub fn tower_of(file: &[u8]) -> Result<(TowerWeights, Metadata), OnnxError> {
    let model = decode(file)?;
    let metadata = metadata_in(&model)?;
    let mut tensors = HashMap::new();
    for tensor in model.graph.iter().flat_map(|graph| &graph.initializer) {
        if let Some(numbers) = floats(tensor)? {
            let dims = tensor.dims.clone();
            tensors.insert(tensor.name().to_owned(), Tensor { dims, numbers });
        }
    }
    // A file may hold numbers in half precision, each tensor with a node that makes floats of them.
    let nodes = model.graph.iter().flat_map(|graph| &graph.node);
    for node in nodes.filter(|node| node.op_type() == "Cast") {
        if let ([from], [to]) = (node.input.as_slice(), node.output.as_slice())
            && let Some(tensor) = tensors.remove(from)
        {
            tensors.insert(to.clone(), tensor);
        }
    }
    let tensors = Tensors(tensors);
    let shape = tensors.shape(metadata.layout.stack().map_err(OnnxError::new)?)?;
    let parts = shape.layers().into_iter().flat_map(|layer| layer.parts());
    let layers = parts.map(|part| {
        Ok(Layer {
            weights: tensors.numbers(&format!("{}.weight", part.name), &part.dims())?,
            bias: tensors.numbers(&format!("{}.bias", part.name), &[part.outputs])?,
            shape: part,
        })
    });
    let layers = layers.collect::<Result<_, OnnxError>>()?;
    let weights = TowerWeights { shape, layers };
    weights.check(&metadata.layout)?;
    Ok((weights, metadata))
}

/// A tensor of floats of a file.
struct Tensor {
    dims: Vec<i64>,
    numbers: Vec<f32>,
}

impl Tensor {
    fn wrong_dimensions(&self, name: &str) -> OnnxError {
        OnnxError::new(format!("`{name}` has the dimensions {:?}", self.dims))
    }
}

/// Tensors of a file by name.
struct Tensors(HashMap<String, Tensor>);

impl Tensors {
    /// Returns the sizes of the tower over `stack` with these tensors.
    fn shape(&self, stack: &PlaneStack) -> Result<TowerShape, OnnxError> {
        let blocks = (0..)
            .take_while(|number| self.has(&format!("block{number}.second")))
            .count();
        let [filters, planes] = self.sizes("input")?;
        let mut pooling = 0;
        let poolings = (0..blocks).map(|number| format!("block{number}.first.pooled"));
        for name in poolings.chain(["policy.conv.pooled".into()]) {
            if self.has(&name) {
                pooling = self.sizes(&name)?[0];
            }
        }
        let (policy, actions) = match self.has("policy.planes") {
            true => {
                let [planes, _] = self.sizes("policy.planes")?;
                let globals = match self.has("policy.globals") {
                    true => self.sizes("policy.globals")?[0],
                    false => 0,
                };
                let actions = planes.saturating_mul(stack.squares()).saturating_add(globals);
                (PolicyShape::Planes { planes, globals }, actions)
            }
            false => {
                let [channels, _] = self.sizes("policy.conv")?;
                (PolicyShape::Dense { channels }, self.sizes("policy.linear")?[0])
            }
        };
        Ok(TowerShape {
            height: stack.height as usize,
            width: stack.width as usize,
            planes,
            actions,
            blocks,
            filters,
            pooling,
            policy,
            value_channels: self.sizes("value.conv")?[0],
            value_hidden: self.sizes("value.hidden")?[0],
            outcomes: self.sizes("value.output")?[0] == 3,
            territory: false,
        })
    }

    fn has(&self, layer: &str) -> bool {
        self.0.contains_key(&format!("{layer}.weight"))
    }

    fn get(&self, name: &str) -> Result<&Tensor, OnnxError> {
        let missing = || {
            OnnxError::new(format!(
                "the file has no floats `{name}`; it is not a tower that Minuet trained"
            ))
        };
        self.0.get(name).ok_or_else(missing)
    }

    /// Returns the numbers of outputs and inputs of a layer.
    fn sizes(&self, layer: &str) -> Result<[usize; 2], OnnxError> {
        let name = format!("{layer}.weight");
        let tensor = self.get(&name)?;
        let size = |at: usize| tensor.dims.get(at).and_then(|&size| size.try_into().ok());
        match (size(0), size(1)) {
            (Some(outputs), Some(inputs)) => Ok([outputs, inputs]),
            _ => Err(tensor.wrong_dimensions(&name)),
        }
    }

    /// Returns the numbers of a tensor that must have these dimensions.
    fn numbers(&self, name: &str, dims: &[usize]) -> Result<Vec<f32>, OnnxError> {
        let tensor = self.get(name)?;
        match tensor.dims.iter().copied().eq(dims.iter().map(|&dim| dim as i64)) {
            true => Ok(tensor.numbers.clone()),
            false => Err(tensor.wrong_dimensions(name)),
        }
    }
}
