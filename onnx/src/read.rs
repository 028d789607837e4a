//! Reads the weights of a tower back from its file: the inverse of [`crate::build`].

use std::collections::HashMap;

use games::planes::SQUARES;
use prost::Message as _;

use crate::{
    model::{Metadata, MetadataError, metadata_in},
    network::{PolicyShape, TowerShape, TowerWeights},
    proto::ModelProto,
    tensor::{TensorError, floats},
    weights::{Layer, NetworkError},
};

/// Error: a file does not hold the weights of a tower.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes are not an ONNX file, or have no metadata of Minuet.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The numbers of a tensor cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A layer is missing, or its numbers are not floats.
    #[error("the file has no floats `{0}`; it is not a tower that Minuet trained")]
    Missing(String),
    /// A tensor has other dimensions than its layer.
    #[error("`{name}` has the dimensions {found:?}")]
    Dimensions {
        /// Name of the tensor.
        name: String,
        /// Dimensions of the tensor.
        found: Vec<i64>,
    },
    /// The layers do not fit each other or the layout.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Reads the weights and the metadata of a tower that [`crate::build`] wrote, also one in half precision ([`crate::half`], or with a
/// cast for each tensor, as the networks that come with Minuet).
///
/// # Errors
/// [`ReadError`], e.g. for a file of a fish-eye network or of 8-bit integers.
pub fn tower_of(file: &[u8]) -> Result<(TowerWeights, Metadata), ReadError> {
    let model = ModelProto::decode(file).map_err(MetadataError::from)?;
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
    let shape = tensors.shape()?;
    let parts = shape.layers().into_iter().flat_map(|layer| layer.parts());
    let layers = parts.map(|part| {
        Ok(Layer {
            weights: tensors.numbers(format!("{}.weight", part.name), &part.dims())?,
            bias: tensors.numbers(format!("{}.bias", part.name), &[part.outputs])?,
            shape: part,
        })
    });
    let layers = layers.collect::<Result<_, ReadError>>()?;
    let weights = TowerWeights { shape, layers };
    weights.check(&metadata.layout)?;
    Ok((weights, metadata))
}

/// A tensor of floats of a file.
struct Tensor {
    dims: Vec<i64>,
    numbers: Vec<f32>,
}

/// Tensors of a file by name.
struct Tensors(HashMap<String, Tensor>);

impl Tensors {
    /// Returns the sizes of the tower with these tensors.
    fn shape(&self) -> Result<TowerShape, ReadError> {
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
                (PolicyShape::Planes { planes }, planes * SQUARES)
            }
            false => {
                let [channels, _] = self.sizes("policy.conv")?;
                (PolicyShape::Dense { channels }, self.sizes("policy.linear")?[0])
            }
        };
        Ok(TowerShape {
            height: 8,
            width: 8,
            planes,
            actions,
            blocks,
            filters,
            pooling,
            policy,
            value_channels: self.sizes("value.conv")?[0],
            value_hidden: self.sizes("value.hidden")?[0],
            outcomes: self.sizes("value.output")?[0] == 3,
        })
    }

    fn has(&self, layer: &str) -> bool {
        self.0.contains_key(&format!("{layer}.weight"))
    }

    fn get(&self, name: String) -> Result<(String, &Tensor), ReadError> {
        match self.0.get(&name) {
            Some(tensor) => Ok((name, tensor)),
            None => Err(ReadError::Missing(name)),
        }
    }

    /// Returns the numbers of outputs and inputs of a layer.
    fn sizes(&self, layer: &str) -> Result<[usize; 2], ReadError> {
        let (name, tensor) = self.get(format!("{layer}.weight"))?;
        let size = |at: usize| tensor.dims.get(at).and_then(|&size| size.try_into().ok());
        match (size(0), size(1)) {
            (Some(outputs), Some(inputs)) => Ok([outputs, inputs]),
            _ => Err(ReadError::Dimensions {
                name,
                found: tensor.dims.clone(),
            }),
        }
    }

    /// Returns the numbers of a tensor that must have these dimensions.
    fn numbers(&self, name: String, dims: &[usize]) -> Result<Vec<f32>, ReadError> {
        let (name, tensor) = self.get(name)?;
        if !tensor.dims.iter().copied().eq(dims.iter().map(|&dim| dim as i64)) {
            return Err(ReadError::Dimensions {
                name,
                found: tensor.dims.clone(),
            });
        }
        Ok(tensor.numbers.clone())
    }
}
