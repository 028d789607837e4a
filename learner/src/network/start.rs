//! A network that begins with the weights of an ONNX file, so that training of a finished network can go on.

use onnx::{Conv, GlobalPooling, Linear, PolicyHead, TowerWeights};

use super::{Network, NetworkShape, PolicyShape, TowerShape, layers::EPSILON};
use crate::torch::{
    TorchError,
    tensor_files::{HostTensor, TensorsError},
};

/// Error: a network cannot begin with given weights.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The run's network is no tower.
    #[error("only a tower can begin with the weights of a file, and this game has the fish-eye network")]
    NoTower,
    /// The weights are those of a tower of other sizes.
    #[error("[model] must have the sizes of that network: {}", .0.join("; ").replace(", was ", ", [model] has "))]
    Shape(Vec<String>),
    /// The variables cannot be overwritten.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// A torch operation failed.
    #[error(transparent)]
    Torch(#[from] TorchError),
}

impl Network {
    /// Overwrites the weights, so that the network computes what `weights` compute. Auxiliary heads keep theirs.
    ///
    /// # Errors
    /// [`StartError::Shape`] with the differences if the network has other sizes; nothing has changed then.
    pub fn begin_with(&mut self, weights: &TowerWeights) -> Result<(), StartError> {
        let NetworkShape::Tower(shape) = self.shape() else {
            return Err(StartError::NoTower);
        };
        let found = NetworkShape::Tower(shape_of(weights, shape));
        let differences = found.differences(self.shape());
        if !differences.is_empty() {
            return Err(StartError::Shape(differences));
        }
        let mut tensors = self.variables().to_host()?;
        for new in variables(weights) {
            match tensors.iter_mut().find(|tensor| tensor.name == new.name) {
                Some(tensor) => *tensor = new,
                None => tensors.push(new),
            }
        }
        Ok(self.variables_mut().load(&tensors)?)
    }
}

/// Returns the sizes of a tower with these weights, and with the auxiliary heads of `like`, which no ONNX file holds.
fn shape_of(weights: &TowerWeights, like: &TowerShape) -> TowerShape {
    let number = |size: usize| size as u32;
    let pooled = |pooling: Option<&GlobalPooling>| pooling.map_or(0, |pooling| pooling.conv.outputs);
    let (policy, in_policy) = match &weights.policy {
        PolicyHead::Dense { conv, linear } => (
            PolicyShape::Dense {
                channels: number(conv.outputs),
            },
            (linear.outputs, 0),
        ),
        PolicyHead::Planes { pooling, planes, .. } => (
            PolicyShape::Planes {
                planes: number(planes.outputs),
            },
            (planes.outputs * games::planes::SQUARES, pooled(pooling.as_ref())),
        ),
    };
    let (actions, pooled_in_policy) = in_policy;
    let blocks = weights.blocks.iter();
    let squeezed = blocks.clone().filter_map(|block| block.gate.as_ref());
    let pooled_in_blocks = blocks.map(|block| pooled(block.pooling.as_ref()));
    TowerShape {
        planes: number(weights.input.inputs),
        actions: number(actions),
        blocks: number(weights.blocks.len()),
        filters: number(weights.filters()),
        squeeze_excitation: number(squeezed.map(|gate| gate.squeeze.outputs).max().unwrap_or(0)),
        global_pooling: number(pooled_in_blocks.max().unwrap_or(0).max(pooled_in_policy)),
        policy,
        value_channels: number(weights.value.conv.outputs),
        value_hidden: number(weights.value.hidden.outputs),
        value_head: match weights.value.has_outcomes() {
            true => config::ValueHead::Wdl,
            false => config::ValueHead::Scalar,
        },
        auxiliary: like.auxiliary,
    }
}

/// Returns all variables of a tower but those of auxiliary heads. A normalisation does nothing at first: its gain is 1 and its shift is
/// the bias of the folded convolution.
fn variables(weights: &TowerWeights) -> Vec<HostTensor> {
    let mut list = Tensors(Vec::new());
    list.conv_norm("input", &weights.input, None);
    for (number, block) in weights.blocks.iter().enumerate() {
        let name = |part: &str| format!("block{number}.{part}");
        list.pooled(
            &name("first"),
            &name("pooling"),
            &block.first,
            block.pooling.as_ref(),
        );
        list.conv_norm(&name("second"), &block.second, None);
        if let Some(gate) = &block.gate {
            list.linear(&name("squeeze"), &gate.squeeze);
            list.linear(&name("excite"), &gate.excite);
        }
    }
    match &weights.policy {
        PolicyHead::Dense { conv, linear } => {
            list.conv_norm("policy", conv, None);
            list.linear("policy.output", linear);
        }
        PolicyHead::Planes {
            conv,
            pooling,
            planes,
        } => {
            list.pooled("policy", "policy.pooling", conv, pooling.as_ref());
            list.conv("policy.output", planes);
        }
    }
    list.conv_norm("value", &weights.value.conv, None);
    list.linear("value.hidden", &weights.value.hidden);
    list.linear("value.output", &weights.value.output);
    list.0
}

struct Tensors(Vec<HostTensor>);

impl Tensors {
    /// Adds the convolution `conv`, and the one over pooled channels beside it, as one convolution with its normalisation.
    fn pooled(&mut self, name: &str, pooling_name: &str, conv: &Conv, pooling: Option<&GlobalPooling>) {
        self.conv_norm(name, conv, pooling.map(|pooling| &pooling.conv));
        if let Some(pooling) = pooling {
            self.linear(pooling_name, &pooling.linear);
        }
    }

    /// Adds a convolution with its normalisation. The output channels of `more` come after those of `conv`.
    fn conv_norm(&mut self, name: &str, conv: &Conv, more: Option<&Conv>) {
        let both = || [conv].into_iter().chain(more);
        let outputs = both().map(|conv| conv.outputs).sum();
        let weights = both().flat_map(|conv| &conv.weights).copied().collect();
        let bias = both().flat_map(|conv| &conv.bias).copied().collect();
        let sides = [outputs, conv.inputs, conv.kernel, conv.kernel];
        let constant = |value: f64| vec![value as f32; outputs];
        self.push(format!("{name}.conv.weight"), &sides, weights);
        self.push(format!("{name}.norm.gain"), &[outputs], constant(1.0));
        self.push(format!("{name}.norm.shift"), &[outputs], bias);
        self.push(format!("{name}.norm.mean"), &[outputs], constant(0.0));
        self.push(
            format!("{name}.norm.variance"),
            &[outputs],
            constant(1.0 - EPSILON),
        );
    }

    fn conv(&mut self, name: &str, conv: &Conv) {
        let sides = [conv.outputs, conv.inputs, conv.kernel, conv.kernel];
        self.push(format!("{name}.weight"), &sides, conv.weights.clone());
        self.push(format!("{name}.bias"), &[conv.outputs], conv.bias.clone());
    }

    fn linear(&mut self, name: &str, linear: &Linear) {
        let sides = [linear.outputs, linear.inputs];
        self.push(format!("{name}.weight"), &sides, linear.weights.clone());
        self.push(format!("{name}.bias"), &[linear.outputs], linear.bias.clone());
    }

    fn push(&mut self, name: String, sides: &[usize], numbers: Vec<f32>) {
        self.0.push(HostTensor {
            name,
            dims: sides.iter().map(|&side| side as i64).collect(),
            numbers,
        });
    }
}
