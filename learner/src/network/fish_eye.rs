//! The fish-eye network: its forward pass, level by level for a whole batch as in the exported graph
//! ([`onnx::fish_eye`] has the definition), and its weights for export.

use std::collections::HashMap;

use onnx::{FishEyeShape, FishEyeWeights, Layer, fish_eye::VALUE_ENCODER};
use tch::{Kind, Tensor};

use super::{
    Outputs, POLICY, Pass, VALUE, ValueForm,
    inputs::FishEyeInputs,
    layers::{Affine, NamedTensors, gather},
};
use crate::torch::{TorchError, to_host};

/// The layers of a fish-eye network, by the names of [`FishEyeShape::layers`].
#[derive(Debug)]
pub(super) struct FishEye {
    shape: FishEyeShape,
    tables: HashMap<String, Tensor>,
    layers: HashMap<String, Affine>,
}

/// The layers that encode septs, grids, views and examples, whose names begin with a prefix.
#[derive(Clone, Copy)]
struct Encoder<'a> {
    network: &'a FishEye,
    prefix: &'static str,
}

impl FishEye {
    pub(super) fn new(shape: &FishEyeShape, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        let mut network = Self {
            shape: shape.clone(),
            tables: HashMap::new(),
            layers: HashMap::new(),
        };
        for layer in shape.layers() {
            let name = layer.name;
            if layer.kind == onnx::Kind::Table {
                let table = from.take(&name)?;
                network.tables.insert(name, table);
            } else {
                let layer = Affine::new(from, &name)?;
                network.layers.insert(name, layer);
            }
        }
        Ok(network)
    }

    fn layer(&self, name: &str) -> Result<&Affine, TorchError> {
        found(&self.layers, name)
    }

    /// Computes all outputs. Matrices and convolutions use the pass's precision; the table, all sums over an imp's uses and the
    /// last layers use f32.
    pub(super) fn forward(&self, inputs: &FishEyeInputs, pass: Pass) -> Result<Outputs, TorchError> {
        let kind = pass.kind;
        let encoder = Encoder {
            network: self,
            prefix: "",
        };
        let table = encoder.table(inputs, kind)?;
        let sept = gather(&table, &inputs.sept)?;
        let context = self.context(&table, inputs, kind)?;
        let path = self.layer("path")?.forward(&inputs.path, kind)?.f_relu_()?;
        let shown = encoder.shown(inputs, pass)?;
        let view = gather(&encoder.board("view", &inputs.views, pass)?, &inputs.view)?;

        let own = [&sept, &context, &path.f_to_kind(Kind::Float)?, &view];
        let own = Tensor::f_cat(&own, 1)?;
        let hidden = self
            .layer("policy.hidden")?
            .forward_beside(&own, &shown, &inputs.position, kind)?
            .f_relu_()?;
        let logits = self.layer("policy.output")?.forward(&hidden, Kind::Float)?;

        let root = match self.shape.shared {
            true => [gather(&sept, &inputs.root)?, shown, gather(&view, &inputs.root)?],
            false => {
                let prefix = VALUE_ENCODER;
                Encoder {
                    network: self,
                    prefix,
                }
                .roots(inputs, pass)?
            }
        };
        let root = Tensor::f_cat(&root, 1)?;
        let hidden = self
            .layer("value.hidden")?
            .forward(&root, Kind::Float)?
            .f_relu_()?;
        let output = self.layer("value.output")?.forward(&hidden, Kind::Float)?;
        Ok(Outputs {
            values: output.f_sigmoid()?.f_flatten(0, -1)?,
            heads: HashMap::from([(POLICY, logits), (VALUE, output)]),
            value_form: ValueForm::Sigmoid,
        })
    }

    /// Returns the contexts, f32 `[imps, context]`, computed once for each parent.
    fn context(&self, table: &Tensor, inputs: &FishEyeInputs, kind: Kind) -> Result<Tensor, TorchError> {
        let dims = [-1, (self.shape.depth * self.shape.width) as i64];
        let matrices = gather(table, &inputs.ancestors)?.f_view(dims)?;
        let contexts = self.layer("context")?.forward(&matrices, kind)?.f_relu_()?;
        gather(&contexts.f_to_kind(Kind::Float)?, &inputs.parent)
    }

    pub(super) fn fold(&self) -> Result<FishEyeWeights, TorchError> {
        let layers = self.shape.layers().into_iter().map(|shape| {
            let (weights, bias) = match shape.kind {
                onnx::Kind::Table => (to_host(found(&self.tables, &shape.name)?)?, Vec::new()),
                _ => self.layer(&shape.name)?.fold()?,
            };
            Ok(Layer { shape, weights, bias })
        });
        Ok(FishEyeWeights {
            shape: self.shape.clone(),
            layers: layers.collect::<Result<_, TorchError>>()?,
        })
    }
}

fn found<'a, T>(layers: &'a HashMap<String, T>, name: &str) -> Result<&'a T, TorchError> {
    let layer = layers.get(name);
    layer.ok_or_else(|| TorchError::new(&format!("the network has no layer `{name}`")))
}

impl Encoder<'_> {
    fn name(self, layer: &str) -> String {
        format!("{}{layer}", self.prefix)
    }

    /// Returns f32 `[values + interior imps, width]`: the embedding, then the septs of the interior imps, each level computed from
    /// those below it.
    fn table(self, inputs: &FishEyeInputs, kind: Kind) -> Result<Tensor, TorchError> {
        let shape = &self.network.shape;
        let dims = [-1, (shape.roles * shape.width) as i64];
        let hidden_layer = self.network.layer(&self.name("rollup.hidden"))?;
        let output_layer = self.network.layer(&self.name("rollup.output"))?;
        let mut table = found(&self.network.tables, &self.name("embedding"))?.shallow_clone();
        for level in inputs.levels.windows(2) {
            let &[from, to] = level else { continue };
            if to <= from {
                continue;
            }
            let roles = inputs.roles.f_narrow(0, from, to - from)?;
            let matrices = gather(&table, &roles)?.f_view(dims)?;
            let hidden = hidden_layer.forward(&matrices, kind)?.f_relu_()?;
            let septs = output_layer.forward(&hidden, kind)?;
            table = Tensor::f_cat(&[&table, &septs.f_to_kind(Kind::Float)?], 0)?;
        }
        Ok(table)
    }

    /// Returns what each position shows, f32 `[batch, position + examples]`: its grids, and the largest numbers of its examples.
    fn shown(self, inputs: &FishEyeInputs, pass: Pass) -> Result<Tensor, TorchError> {
        let grids = self.board("grids", &inputs.grids, pass)?;
        if self.network.shape.examples == 0 {
            return Ok(grids);
        }
        let Some(examples) = &inputs.examples else {
            return Err(TorchError::new(
                "the network takes examples, but the rows hold none",
            ));
        };
        let vectors = self.board("examples", &examples.boards, pass)?;
        // A position without an example has zeros for it.
        let none = Tensor::f_zeros([1, vectors.size2()?.1], (Kind::Float, vectors.device()))?;
        let table = Tensor::f_cat(&[none, vectors], 0)?;
        let largest = gather(&table, &examples.of)?.f_amax([1], false)?;
        Ok(Tensor::f_cat(&[grids, largest], 1)?)
    }

    /// Encodes boards as lists of numbers, f32: convolutions, a convolution to few channels, and a fully connected layer, each with
    /// ReLU. `part` begins the names of the layers.
    fn board(self, part: &str, planes: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let conv = |name: &str, board: &Tensor| -> Result<Tensor, TorchError> {
            let layer = self.network.layer(&self.name(name))?;
            Ok(layer.convolve(board, pass.kind)?.f_relu_()?)
        };
        let mut board = planes.f_to_kind(pass.kind)?;
        if part == "view" {
            board = conv("view.conv", &board)?;
        } else {
            for number in 0..self.network.shape.convolutions {
                board = conv(&format!("{part}.conv{number}"), &board)?;
            }
        }
        let reduced = conv(&format!("{part}.reduce"), &board)?.f_flatten(1, -1)?;
        let output = self.network.layer(&self.name(&format!("{part}.output")))?;
        let numbers = output.forward(&reduced, pass.kind)?.f_relu_()?;
        Ok(numbers.f_to_kind(Kind::Float)?)
    }

    /// Returns sept, what is shown, and view of the root of each position, f32 `[batch, …]` each.
    fn roots(self, inputs: &FishEyeInputs, pass: Pass) -> Result<[Tensor; 3], TorchError> {
        let of_root = |numbers: &Tensor| numbers.f_index_select(0, &inputs.root);
        let sept = gather(&self.table(inputs, pass.kind)?, &of_root(&inputs.sept)?)?;
        let views = inputs.views.f_index_select(0, &of_root(&inputs.view)?)?;
        Ok([sept, self.shown(inputs, pass)?, self.board("view", &views, pass)?])
    }
}
