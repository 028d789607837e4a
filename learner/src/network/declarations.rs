//! Every variable of a network: name, dimensions and first values.
//!
//! First values are drawn here and not by torch, so that a seed gives the same network on every machine. Convolutions
//! begin as He et al. (2015) derive for ReLU; the last normalisation of each block begins at 0, so that the block
//! begins as the identity (Goyal et al., 2017). In towers the last layers of policy and value begin at 0: the first policy is
//! exactly uniform and the first value exactly 0, so that the first games are played by a search without a bias. Other last
//! layers begin small. For a layer over one-hot planes, the number of inputs is that of the planes
//! which can be 1 at a time.

use config::ValueHead;
use games::planes::SQUARES;
use onnx::{FishEyeShape, fish_eye::VALUE_ENCODER};
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution as _, Normal};

use super::{NetworkShape, PolicyShape, TowerShape};

/// Scale of the first weights of the last layers of a tower's policy and value, relative to He's.
const SERVED_LAYER: f32 = 0.0;
/// Scale of the first weights of other last layers.
const LAST_LAYER: f32 = 0.1;

/// Use of a variable in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Trained, with weight decay: weights of convolutions and linear layers.
    Weight,
    /// Trained, without weight decay: biases, and the gain and shift of normalisations.
    Plain,
    /// Not trained: running statistics.
    Statistic,
}

/// One variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Name, e.g. `block0.first.conv.weight`.
    pub name: String,
    /// Dimensions.
    pub dims: Vec<i64>,
    /// Use in training.
    pub purpose: Purpose,
    /// First values, row-major.
    pub values: Vec<f32>,
}

/// Returns the variables of a network, in a fixed order. The same seed gives the same values.
pub fn declarations(shape: &NetworkShape, seed: u64) -> Vec<Declaration> {
    let mut list = Declarations {
        list: Vec::new(),
        draw: ChaCha20Rng::seed_from_u64(seed),
    };
    match shape {
        NetworkShape::Tower(shape) => tower(&mut list, shape),
        NetworkShape::FishEye(shape) => fish_eye(&mut list, shape),
    }
    list.list
}

fn tower(list: &mut Declarations, shape: &TowerShape) {
    let (filters, squares) = (shape.filters, SQUARES as u32);
    list.conv_norm("input", filters, shape.planes, 3, 1.0);
    for block in 0..shape.blocks {
        list.conv_norm(&format!("block{block}.first"), filters, filters, 3, 1.0);
        let kept = list.pooling(&format!("block{block}.pooling"), filters, shape.pooled_in(block));
        list.conv_norm(&format!("block{block}.second"), filters, kept, 3, 0.0);
    }
    match shape.policy {
        PolicyShape::Dense { channels } => list.conv_norm("policy", channels, filters, 1, 1.0),
        PolicyShape::Planes { .. } => list.conv_norm("policy", filters, filters, 3, 1.0),
    }
    let kept = list.pooling("policy.pooling", filters, shape.pooled_in_policy());
    match shape.policy {
        PolicyShape::Dense { channels } => {
            list.linear("policy.output", shape.actions, channels * squares, SERVED_LAYER);
        }
        PolicyShape::Planes { planes } => {
            list.conv("policy.output", planes, kept, 3, SERVED_LAYER);
            list.constant("policy.output.bias", planes, Purpose::Plain, 0.0);
        }
    }
    let channels = shape.value_channels;
    list.conv_norm("value", channels, filters, 1, 1.0);
    list.linear("value.hidden", shape.value_hidden, channels * squares, 1.0);
    let outputs = match shape.value_head {
        ValueHead::Scalar => 1,
        ValueHead::Wdl => 3,
    };
    list.linear("value.output", outputs, shape.value_hidden, SERVED_LAYER);
}

/// Declares the layers of a fish-eye network. Their names are those of [`FishEyeShape::layers`].
fn fish_eye(list: &mut Declarations, shape: &FishEyeShape) {
    let number = |size: usize| size as u32;
    // No weight decay, because an embedding is looked up and not multiplied.
    let dims = [number(shape.values), number(shape.width)];
    for prefix in shape.encoders() {
        list.normal(&format!("{prefix}embedding"), &dims, Purpose::Plain, 1.0);
    }
    for (name, outputs, inputs, kernel) in shape.layers() {
        let (outputs, inputs, kernel) = (number(outputs), number(inputs), number(kernel));
        let layer = match name.strip_prefix(VALUE_ENCODER) {
            // The value's own layers after its encoder.
            Some("hidden" | "output") | None => name.as_str(),
            Some(of_encoder) => of_encoder,
        };
        let active = match layer {
            "path" => number(shape.depth),
            "grids.conv0" => kernel * kernel * number(shape.grids),
            // An example has two grids.
            "examples.conv0" => kernel * kernel * 2,
            "view.conv" => kernel * kernel,
            _ => inputs * (kernel * kernel).max(1),
        };
        let scale = match layer {
            "policy.output" | "value.output" => LAST_LAYER,
            // No ReLU follows, and a sept should be as large as a leaf's value.
            "rollup.output" => std::f32::consts::FRAC_1_SQRT_2,
            _ => 1.0,
        };
        let dims: &[u32] = match kernel {
            0 => &[outputs, inputs],
            _ => &[outputs, inputs, kernel, kernel],
        };
        list.he(&format!("{name}.weight"), dims, active, scale);
        list.constant(&format!("{name}.bias"), outputs, Purpose::Plain, 0.0);
    }
}

struct Declarations {
    list: Vec<Declaration>,
    draw: ChaCha20Rng,
}

impl Declarations {
    fn conv_norm(&mut self, name: &str, outputs: u32, inputs: u32, kernel: u32, gain: f32) {
        self.conv(&format!("{name}.conv"), outputs, inputs, kernel, 1.0);
        self.constant(&format!("{name}.norm.gain"), outputs, Purpose::Plain, gain);
        self.constant(&format!("{name}.norm.shift"), outputs, Purpose::Plain, 0.0);
        self.constant(&format!("{name}.norm.mean"), outputs, Purpose::Statistic, 0.0);
        self.constant(&format!("{name}.norm.variance"), outputs, Purpose::Statistic, 1.0);
    }

    /// Declares the linear layer from the pooled channels to the others, with small first weights. Returns the number of the
    /// other channels.
    fn pooling(&mut self, name: &str, channels: u32, pooled: u32) -> u32 {
        let kept = channels.saturating_sub(pooled);
        if pooled > 0 {
            self.linear(name, kept, 2 * pooled, LAST_LAYER);
        }
        kept
    }

    fn conv(&mut self, name: &str, outputs: u32, inputs: u32, kernel: u32, scale: f32) {
        let dims = [outputs, inputs, kernel, kernel];
        self.he(&format!("{name}.weight"), &dims, inputs * kernel * kernel, scale);
    }

    fn linear(&mut self, name: &str, outputs: u32, inputs: u32, scale: f32) {
        self.he(&format!("{name}.weight"), &[outputs, inputs], inputs, scale);
        self.constant(&format!("{name}.bias"), outputs, Purpose::Plain, 0.0);
    }

    /// Declares weights with a normal distribution of variance `2 / inputs`, times `scale`.
    fn he(&mut self, name: &str, dims: &[u32], inputs: u32, scale: f32) {
        let deviation = scale * (2.0 / inputs.max(1) as f32).sqrt();
        self.normal(name, dims, Purpose::Weight, deviation);
    }

    fn normal(&mut self, name: &str, dims: &[u32], purpose: Purpose, deviation: f32) {
        let count = dims.iter().map(|&dim| dim as usize).product();
        let values = match Normal::new(0.0, deviation) {
            Ok(normal) => normal.sample_iter(&mut self.draw).take(count).collect(),
            // Not reached: the deviation is finite.
            Err(_) => vec![0.0; count],
        };
        self.push(name, dims, purpose, values);
    }

    fn constant(&mut self, name: &str, count: u32, purpose: Purpose, value: f32) {
        self.push(name, &[count], purpose, vec![value; count as usize]);
    }

    fn push(&mut self, name: &str, dims: &[u32], purpose: Purpose, values: Vec<f32>) {
        self.list.push(Declaration {
            name: name.to_owned(),
            dims: dims.iter().copied().map(i64::from).collect(),
            purpose,
            values,
        });
    }
}
