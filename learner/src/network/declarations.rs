//! Every variable of a network: name, dimensions and first values.
//!
//! First values are drawn here and not by torch, so that a seed gives the same network on every machine. Convolutions
//! begin as He et al. (2015) derive for ReLU; the last normalisation of each block begins at 0, so that the block
//! begins as the identity (Goyal et al., 2017). In towers the last layers of policy and value begin at 0: the first policy is
//! exactly uniform and the first value exactly 0, so that the first games are played by a search without a bias. Other last
//! layers begin small. For a layer over one-hot planes, the number of inputs is that of the planes
//! which can be 1 at a time.

use onnx::{FishEyeShape, Kind, LayerShape, TowerShape, fish_eye::VALUE_ENCODER};
use rand::SeedableRng as _;
use rand_chacha::ChaCha20Rng;
use rand_distr::{Distribution as _, Normal};

use super::NetworkShape;

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
    for layer in shape.layers().into_iter().chain(shape.training_layers()) {
        let (name, outputs) = (&layer.variable, layer.shape.outputs);
        if layer.has_norm {
            list.he(
                &format!("{name}.conv.weight"),
                &layer.shape,
                layer.shape.taps(),
                1.0,
            );
            let gain = if name.ends_with(".second") { 0.0 } else { 1.0 };
            for (part, purpose, value) in [
                ("gain", Purpose::Plain, gain),
                ("shift", Purpose::Plain, 0.0),
                ("mean", Purpose::Statistic, 0.0),
                ("variance", Purpose::Statistic, 1.0),
            ] {
                list.constant(&format!("{name}.norm.{part}"), outputs, purpose, value);
            }
        } else {
            let scale = match name.as_str() {
                "policy.output" | "policy.globals" | "value.output" | "territory.owners"
                | "territory.score" => SERVED_LAYER,
                _ => 1.0,
            };
            list.layer(name, &layer.shape, layer.shape.taps(), scale);
        }
        if layer.pooled > 0 {
            let inputs = 2 * layer.pooled;
            let linear = LayerShape::new("", Kind::Linear, layer.kept(), inputs);
            list.layer(&layer.pooling_variable, &linear, inputs, LAST_LAYER);
        }
    }
}

fn fish_eye(list: &mut Declarations, shape: &FishEyeShape) {
    for layer in shape.layers() {
        let name = layer.name.as_str();
        let squares = match layer.kind {
            Kind::Conv(side) => side * side,
            Kind::Table => {
                // No weight decay, because an embedding is looked up and not multiplied.
                list.normal(name, &layer, Purpose::Plain, 1.0);
                continue;
            }
            Kind::Linear | Kind::LinearAsConv => 1,
        };
        let of_encoder = match name.strip_prefix(VALUE_ENCODER) {
            // The value's own layers after its encoder.
            Some("hidden" | "output") | None => name,
            Some(of_encoder) => of_encoder,
        };
        let active = match of_encoder {
            "path" => shape.depth,
            "grids.conv0" => squares * shape.grids,
            // An example has two grids.
            "examples.conv0" => squares * 2,
            "view.conv" => squares,
            _ => layer.taps(),
        };
        let scale = match of_encoder {
            "policy.output" | "value.output" => LAST_LAYER,
            // No ReLU follows, and a sept should be as large as a leaf's value.
            "rollup.output" => std::f32::consts::FRAC_1_SQRT_2,
            _ => 1.0,
        };
        list.layer(name, &layer, active, scale);
    }
}

struct Declarations {
    list: Vec<Declaration>,
    draw: ChaCha20Rng,
}

impl Declarations {
    /// Declares weights and biases. `active` is the number of inputs of an output that are not 0 at a time.
    fn layer(&mut self, name: &str, shape: &LayerShape, active: usize, scale: f32) {
        self.he(&format!("{name}.weight"), shape, active, scale);
        self.constant(&format!("{name}.bias"), shape.outputs, Purpose::Plain, 0.0);
    }

    /// Declares weights with a normal distribution of variance `2 / active`, times `scale`.
    fn he(&mut self, name: &str, shape: &LayerShape, active: usize, scale: f32) {
        let deviation = scale * (2.0 / active.max(1) as f32).sqrt();
        self.normal(name, shape, Purpose::Weight, deviation);
    }

    fn normal(&mut self, name: &str, shape: &LayerShape, purpose: Purpose, deviation: f32) {
        let count = shape.outputs * shape.taps();
        let values = match Normal::new(0.0, deviation) {
            Ok(normal) => normal.sample_iter(&mut self.draw).take(count).collect(),
            // Not reached: the deviation is finite.
            Err(_) => vec![0.0; count],
        };
        self.push(name, &shape.dims(), purpose, values);
    }

    fn constant(&mut self, name: &str, count: usize, purpose: Purpose, value: f32) {
        self.push(name, &[count], purpose, vec![value; count]);
    }

    fn push(&mut self, name: &str, dims: &[usize], purpose: Purpose, values: Vec<f32>) {
        self.list.push(Declaration {
            name: name.to_owned(),
            dims: dims.iter().map(|&dim| dim as i64).collect(),
            purpose,
            values,
        });
    }
}
