//! Reads the weights of a tower back from its file: the inverse of [`crate::build`].

use std::collections::HashMap;

use prost::Message as _;

use crate::{
    model::{Metadata, MetadataError, metadata_in},
    proto::ModelProto,
    tensor::{TensorError, floats},
    weights::{Block, Conv, GlobalPooling, Linear, PolicyHead, TowerError, TowerWeights, ValueHead},
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
    /// A tensor has another number of dimensions than its layer.
    #[error("`{name}` has the dimensions {found:?}")]
    Dimensions {
        /// Name of the tensor.
        name: String,
        /// Dimensions of the tensor.
        found: Vec<i64>,
    },
    /// The layers do not fit each other or the layout.
    #[error(transparent)]
    Tower(#[from] TowerError),
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
    let mut layers = Layers(tensors);
    let input = layers.conv("input")?;
    let mut blocks = Vec::new();
    while layers.has(&format!("block{}.second", blocks.len())) {
        blocks.push(layers.block(&format!("block{}", blocks.len()))?);
    }
    let weights = TowerWeights {
        input,
        blocks,
        policy: layers.policy()?,
        value: ValueHead {
            conv: layers.conv("value.conv")?,
            hidden: layers.linear("value.hidden")?,
            output: layers.linear("value.output")?,
        },
    };
    weights.check(&metadata.layout)?;
    Ok((weights, metadata))
}

/// A tensor of floats of a file.
struct Tensor {
    dims: Vec<i64>,
    numbers: Vec<f32>,
}

/// Tensors of a file by name. Each is taken once.
struct Layers(HashMap<String, Tensor>);

impl Layers {
    fn has(&self, layer: &str) -> bool {
        self.0.contains_key(&format!("{layer}.weight"))
    }

    /// Takes a tensor with `N` dimensions.
    fn take<const N: usize>(&mut self, name: String) -> Result<([usize; N], Vec<f32>), ReadError> {
        let Some(Tensor { dims, numbers }) = self.0.remove(&name) else {
            return Err(ReadError::Missing(name));
        };
        let sides: Option<Vec<usize>> = dims.iter().map(|&side| side.try_into().ok()).collect();
        match sides.map(<[usize; N]>::try_from) {
            Some(Ok(sides)) => Ok((sides, numbers)),
            _ => Err(ReadError::Dimensions { name, found: dims }),
        }
    }

    fn conv(&mut self, layer: &str) -> Result<Conv, ReadError> {
        let ([outputs, inputs, kernel, _], weights) = self.take(format!("{layer}.weight"))?;
        let ([_], bias) = self.take(format!("{layer}.bias"))?;
        Ok(Conv {
            outputs,
            inputs,
            kernel,
            weights,
            bias,
        })
    }

    fn linear(&mut self, layer: &str) -> Result<Linear, ReadError> {
        let ([outputs, inputs], weights) = self.take(format!("{layer}.weight"))?;
        let ([_], bias) = self.take(format!("{layer}.bias"))?;
        Ok(Linear {
            outputs,
            inputs,
            weights,
            bias,
        })
    }

    /// Takes a linear layer that the file has as a convolution over a board of one square.
    fn linear_as_conv(&mut self, layer: &str) -> Result<Linear, ReadError> {
        let conv = self.conv(layer)?;
        Ok(Linear {
            outputs: conv.outputs,
            inputs: conv.inputs,
            weights: conv.weights,
            bias: conv.bias,
        })
    }

    fn block(&mut self, block: &str) -> Result<Block, ReadError> {
        let (first, pooling) = self.pooled(&format!("{block}.first"))?;
        let second = self.conv(&format!("{block}.second"))?;
        Ok(Block {
            first,
            pooling,
            second,
        })
    }

    /// Takes a convolution, and the global pooling beside it if there is one.
    fn pooled(&mut self, layer: &str) -> Result<(Conv, Option<GlobalPooling>), ReadError> {
        let own = self.conv(layer)?;
        let pooled = format!("{layer}.pooled");
        let pooling = match self.has(&pooled) {
            true => Some(GlobalPooling {
                conv: self.conv(&pooled)?,
                linear: self.linear_as_conv(&format!("{pooled}.linear"))?,
            }),
            false => None,
        };
        Ok((own, pooling))
    }

    fn policy(&mut self) -> Result<PolicyHead, ReadError> {
        let (conv, pooling) = self.pooled("policy.conv")?;
        Ok(match self.has("policy.planes") {
            true => PolicyHead::Planes {
                conv,
                pooling,
                planes: self.conv("policy.planes")?,
            },
            false => PolicyHead::Dense {
                conv,
                linear: self.linear("policy.linear")?,
            },
        })
    }
}
