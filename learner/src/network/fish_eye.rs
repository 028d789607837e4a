//! The fish-eye network: its forward pass, level by level for a whole batch as in the exported graph
//! ([`onnx::fish_eye`] has the definition), and its weights for export.

use onnx::{EncoderWeights, ExampleWeights, FishEyeShape, FishEyeWeights, fish_eye::VALUE_ENCODER};
use tch::{Kind, Tensor};

use super::{
    Outputs, Pass, ValueLogits,
    inputs::{ExampleInputs, FishEyeInputs},
    layers::{Conv, Linear, NamedTensors, gather},
};
use crate::torch::{TorchError, to_host};

/// The layers of a fish-eye network.
#[derive(Debug)]
pub(super) struct FishEye {
    shape: FishEyeShape,
    encoder: Encoder,
    context: Linear,
    path: Linear,
    policy_hidden: Linear,
    policy_output: Linear,
    /// Encoder of the value if it is a network of its own.
    value_encoder: Option<Encoder>,
    value_hidden: Linear,
    value_output: Linear,
}

/// The layers that encode septs, grids and views.
#[derive(Debug)]
struct Encoder {
    embedding: Tensor,
    rollup_hidden: Linear,
    rollup_output: Linear,
    grids: Vec<Conv>,
    grids_reduce: Conv,
    grids_output: Linear,
    view: Conv,
    view_reduce: Conv,
    view_output: Linear,
    /// Layers over an example, in networks that take them.
    examples: Option<ExampleEncoder>,
}

/// The layers that encode an example.
#[derive(Debug)]
struct ExampleEncoder {
    convolutions: Vec<Conv>,
    reduce: Conv,
    output: Linear,
}

impl FishEye {
    pub(super) fn new(shape: &FishEyeShape, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        let value_encoder = match shape.shared {
            true => None,
            false => Some(Encoder::new(shape, VALUE_ENCODER, from)?),
        };
        Ok(Self {
            shape: shape.clone(),
            encoder: Encoder::new(shape, "", from)?,
            context: Linear::new(from, "context")?,
            path: Linear::new(from, "path")?,
            policy_hidden: Linear::new(from, "policy.hidden")?,
            policy_output: Linear::new(from, "policy.output")?,
            value_encoder,
            value_hidden: Linear::new(from, "value.hidden")?,
            value_output: Linear::new(from, "value.output")?,
        })
    }

    /// Computes all outputs. Matrices and convolutions use the pass's precision; the table, all sums over an imp's uses and the
    /// last layers use f32.
    pub(super) fn forward(&self, inputs: &FishEyeInputs, pass: Pass) -> Result<Outputs, TorchError> {
        let kind = pass.kind;
        let table = self.encoder.table(inputs, &self.shape, kind)?;
        let sept = gather(&table, &inputs.sept)?;
        let context = self.context(&table, inputs, kind)?;
        let path = self.path.forward(&inputs.path, kind)?.f_relu_()?;
        let shown = self.encoder.shown(inputs, pass)?;
        let views = self.encoder.views(&inputs.views, pass)?;
        let view = gather(&views, &inputs.view)?;

        let own = [&sept, &context, &path.f_to_kind(Kind::Float)?, &view];
        let own = Tensor::f_cat(&own, 1)?;
        let hidden = self
            .policy_hidden
            .forward_beside(&own, &shown, &inputs.position, kind)?
            .f_relu_()?;
        let logits = self.policy_output.forward(&hidden, Kind::Float)?;

        let root = match &self.value_encoder {
            None => [gather(&sept, &inputs.root)?, shown, gather(&view, &inputs.root)?],
            Some(own) => own.roots(inputs, &self.shape, pass)?,
        };
        let root = Tensor::f_cat(&root, 1)?;
        let hidden = self.value_hidden.forward(&root, Kind::Float)?.f_relu_()?;
        let value_logits = self
            .value_output
            .forward(&hidden, Kind::Float)?
            .f_flatten(0, -1)?;
        Ok(Outputs {
            logits,
            values: value_logits.f_sigmoid()?,
            value_logits: Some(ValueLogits::Sigmoid(value_logits)),
        })
    }

    /// Returns the contexts, f32 `[imps, context]`, computed once for each parent.
    fn context(&self, table: &Tensor, inputs: &FishEyeInputs, kind: Kind) -> Result<Tensor, TorchError> {
        let dims = [-1, (self.shape.depth * self.shape.width) as i64];
        let matrices = gather(table, &inputs.ancestors)?.f_view(dims)?;
        let contexts = self.context.forward(&matrices, kind)?.f_relu_()?;
        gather(&contexts.f_to_kind(Kind::Float)?, &inputs.parent)
    }

    pub(super) fn fold(&self) -> Result<FishEyeWeights, TorchError> {
        Ok(FishEyeWeights {
            shape: self.shape.clone(),
            encoder: self.encoder.fold()?,
            context: self.context.fold()?,
            path: self.path.fold()?,
            policy_hidden: self.policy_hidden.fold()?,
            policy_output: self.policy_output.fold()?,
            value_encoder: self.value_encoder.as_ref().map(Encoder::fold).transpose()?,
            value_hidden: self.value_hidden.fold()?,
            value_output: self.value_output.fold()?,
        })
    }
}

impl Encoder {
    /// Takes the layers whose names begin with `prefix`.
    fn new(shape: &FishEyeShape, prefix: &str, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        let name = |layer: &str| format!("{prefix}{layer}");
        let grids = (0..shape.convolutions)
            .map(|number| Conv::new(from, &name(&format!("grids.conv{number}"))))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            embedding: from.take(&name("embedding"))?,
            rollup_hidden: Linear::new(from, &name("rollup.hidden"))?,
            rollup_output: Linear::new(from, &name("rollup.output"))?,
            grids,
            grids_reduce: Conv::new(from, &name("grids.reduce"))?,
            grids_output: Linear::new(from, &name("grids.output"))?,
            view: Conv::new(from, &name("view.conv"))?,
            view_reduce: Conv::new(from, &name("view.reduce"))?,
            view_output: Linear::new(from, &name("view.output"))?,
            examples: match shape.examples {
                0 => None,
                _ => Some(ExampleEncoder::new(shape, prefix, from)?),
            },
        })
    }

    /// Returns f32 `[values + interior imps, width]`: the embedding, then the septs of the interior imps, each level computed from
    /// those below it.
    fn table(&self, inputs: &FishEyeInputs, shape: &FishEyeShape, kind: Kind) -> Result<Tensor, TorchError> {
        let dims = [-1, (shape.roles * shape.width) as i64];
        let mut table = self.embedding.shallow_clone();
        for level in inputs.levels.windows(2) {
            let &[from, to] = level else { continue };
            if to <= from {
                continue;
            }
            let roles = inputs.roles.f_narrow(0, from, to - from)?;
            let matrices = gather(&table, &roles)?.f_view(dims)?;
            let hidden = self.rollup_hidden.forward(&matrices, kind)?.f_relu_()?;
            let septs = self.rollup_output.forward(&hidden, kind)?;
            table = Tensor::f_cat(&[&table, &septs.f_to_kind(Kind::Float)?], 0)?;
        }
        Ok(table)
    }

    /// Returns what each position shows, f32 `[batch, position + examples]`: its grids, and the greatest numbers of its examples.
    fn shown(&self, inputs: &FishEyeInputs, pass: Pass) -> Result<Tensor, TorchError> {
        let grids = self.position(inputs, pass)?;
        match (&self.examples, &inputs.examples) {
            (None, _) => Ok(grids),
            (Some(encoder), Some(examples)) => {
                Ok(Tensor::f_cat(&[grids, encoder.greatest(examples, pass)?], 1)?)
            }
            (Some(_), None) => Err(TorchError::new(
                "the network takes examples, but the rows hold none",
            )),
        }
    }

    /// Returns the encoded grids of each position, f32 `[batch, position]`.
    fn position(&self, inputs: &FishEyeInputs, pass: Pass) -> Result<Tensor, TorchError> {
        let mut board = inputs.grids.f_to_kind(pass.kind)?;
        for conv in &self.grids {
            board = conv.forward(&board, pass)?.f_relu_()?;
        }
        encode(&board, &self.grids_reduce, &self.grids_output, pass)
    }

    /// Returns encoded views, f32 `[views, view]`, of views as planes.
    fn views(&self, views: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let board = views.f_to_kind(pass.kind)?;
        let board = self.view.forward(&board, pass)?.f_relu_()?;
        encode(&board, &self.view_reduce, &self.view_output, pass)
    }

    /// Returns sept, what is shown, and view of the root of each position, f32 `[batch, …]` each.
    fn roots(
        &self,
        inputs: &FishEyeInputs,
        shape: &FishEyeShape,
        pass: Pass,
    ) -> Result<[Tensor; 3], TorchError> {
        let of_root = |numbers: &Tensor| numbers.f_index_select(0, &inputs.root);
        let sept = gather(&self.table(inputs, shape, pass.kind)?, &of_root(&inputs.sept)?)?;
        let views = inputs.views.f_index_select(0, &of_root(&inputs.view)?)?;
        Ok([sept, self.shown(inputs, pass)?, self.views(&views, pass)?])
    }

    fn fold(&self) -> Result<EncoderWeights, TorchError> {
        Ok(EncoderWeights {
            embedding: to_host(&self.embedding)?,
            rollup_hidden: self.rollup_hidden.fold()?,
            rollup_output: self.rollup_output.fold()?,
            grids: self.grids.iter().map(Conv::fold).collect::<Result<_, _>>()?,
            grids_reduce: self.grids_reduce.fold()?,
            grids_output: self.grids_output.fold()?,
            view: self.view.fold()?,
            view_reduce: self.view_reduce.fold()?,
            view_output: self.view_output.fold()?,
            examples: self.examples.as_ref().map(ExampleEncoder::fold).transpose()?,
        })
    }
}

impl ExampleEncoder {
    /// Takes the layers whose names begin with `prefix` and `examples.`.
    fn new(shape: &FishEyeShape, prefix: &str, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        let name = |layer: &str| format!("{prefix}examples.{layer}");
        Ok(Self {
            convolutions: (0..shape.convolutions)
                .map(|number| Conv::new(from, &name(&format!("conv{number}"))))
                .collect::<Result<_, _>>()?,
            reduce: Conv::new(from, &name("reduce"))?,
            output: Linear::new(from, &name("output"))?,
        })
    }

    /// Returns the greatest numbers of the examples of each position, f32 `[batch, examples]`; 0 without any.
    fn greatest(&self, inputs: &ExampleInputs, pass: Pass) -> Result<Tensor, TorchError> {
        let mut board = inputs.boards.f_to_kind(pass.kind)?;
        for conv in &self.convolutions {
            board = conv.forward(&board, pass)?.f_relu_()?;
        }
        let vectors = encode(&board, &self.reduce, &self.output, pass)?;
        let none = Tensor::f_zeros([1, vectors.size2()?.1], (Kind::Float, vectors.device()))?;
        let table = Tensor::f_cat(&[none, vectors], 0)?;
        Ok(gather(&table, &inputs.of)?.f_amax([1], false)?)
    }

    fn fold(&self) -> Result<ExampleWeights, TorchError> {
        Ok(ExampleWeights {
            convolutions: self
                .convolutions
                .iter()
                .map(Conv::fold)
                .collect::<Result<_, _>>()?,
            reduce: self.reduce.fold()?,
            output: self.output.fold()?,
        })
    }
}

/// Encodes a board as a list of numbers: `relu(output(relu(reduce(board))))`, in f32.
fn encode(board: &Tensor, reduce: &Conv, output: &Linear, pass: Pass) -> Result<Tensor, TorchError> {
    let reduced = reduce.forward(board, pass)?.f_relu_()?.f_flatten(1, -1)?;
    let numbers = output.forward(&reduced, pass.kind)?.f_relu_()?;
    Ok(numbers.f_to_kind(Kind::Float)?)
}
