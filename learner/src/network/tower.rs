//! The residual tower: its forward pass over the steps of [`onnx::network`], and its folded form for export.
//!
//! The fully connected layers of the heads always compute in f32: they cost little, and bf16 would round a value to 8 bits.

use std::collections::HashMap;

use onnx::{
    Layer as Folded, TowerShape, TowerWeights,
    network::{Step, TowerLayer},
};
use tch::{Kind, Tensor};

use super::{
    Outputs, POLICY, Pass, TERRITORY, VALUE, ValueForm,
    layers::{Affine, ConvNorm, NamedTensors},
};
use crate::torch::TorchError;

/// The layers of a tower.
#[derive(Debug)]
pub(super) struct Tower {
    shape: TowerShape,
    trunk: Vec<Op>,
    /// The heads by name, in the order of the file.
    heads: Vec<(&'static str, Vec<Op>)>,
    /// The head that only training uses, if there is one.
    territory: Option<Vec<Op>>,
}

/// A step with its variables.
#[derive(Debug)]
enum Op {
    Layer(Box<Layer>),
    Flatten,
    Keep,
    Add,
    Append(Box<Layer>),
}

#[derive(Debug)]
struct Layer {
    step: TowerLayer,
    variables: LayerVariables,
    /// Linear layer of the pooling. KataGo normalises the outputs that are not pooled after its result is added. Here all outputs are
    /// normalised before that, so that the whole folds into two convolutions.
    pooling: Option<Affine>,
}

#[derive(Debug)]
enum LayerVariables {
    ConvNorm(ConvNorm),
    Affine(Affine),
}

impl Tower {
    pub(super) fn new(shape: &TowerShape, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        let mut build = |steps: Vec<Step>| -> Result<Vec<Op>, TorchError> {
            steps.into_iter().map(|step| Op::new(step, from)).collect()
        };
        Ok(Self {
            shape: *shape,
            trunk: build(shape.trunk())?,
            heads: vec![(POLICY, build(shape.policy())?), (VALUE, build(shape.value())?)],
            territory: shape.territory.then(|| build(shape.territory())).transpose()?,
        })
    }

    /// Evaluates `planes`, f32 `[batch, planes, height, width]` on the network's device.
    pub(super) fn forward(&self, planes: &Tensor, pass: Pass) -> Result<Outputs, TorchError> {
        let board = walk(&self.trunk, planes.f_to_kind(pass.kind)?, pass)?;
        let mut heads = HashMap::new();
        let territory = self.territory.iter().map(|ops| (&TERRITORY, ops));
        for (name, ops) in self.heads.iter().map(|(name, ops)| (name, ops)).chain(territory) {
            let output = walk(ops, board.shallow_clone(), pass)?;
            heads.insert(*name, output.f_to_kind(Kind::Float)?);
        }
        let output = &heads[VALUE];
        let (values, value_form) = if self.shape.outcomes {
            let outcomes = output.f_softmax(1, Kind::Float)?;
            let values = outcomes.f_select(1, 0)?.f_sub(&outcomes.f_select(1, 2)?)?;
            (values, ValueForm::Outcomes)
        } else {
            (output.f_tanh()?.f_flatten(0, -1)?, ValueForm::Tanh)
        };
        Ok(Outputs {
            heads,
            values,
            value_form,
        })
    }

    fn layers(&self) -> impl Iterator<Item = &Layer> {
        let heads = self.heads.iter().flat_map(|(_, ops)| ops);
        let ops = self.trunk.iter().chain(heads);
        ops.filter_map(|op| match op {
            Op::Layer(layer) | Op::Append(layer) => Some(&**layer),
            Op::Flatten | Op::Keep | Op::Add => None,
        })
    }

    /// Takes the weights of [`Tower::fold`] of a tower of the same shape.
    pub(super) fn unfold(&self, weights: &TowerWeights) -> Result<(), TorchError> {
        self.layers().try_for_each(|layer| layer.unfold(weights))
    }

    /// Returns the weights, with the normalisations folded into the convolutions.
    pub(super) fn fold(&self) -> Result<TowerWeights, TorchError> {
        let mut layers = Vec::new();
        for layer in self.layers() {
            layers.extend(layer.fold()?);
        }
        Ok(TowerWeights {
            shape: self.shape.served(),
            layers,
        })
    }
}

fn walk(ops: &[Op], board: Tensor, pass: Pass) -> Result<Tensor, TorchError> {
    let mut now = board;
    let mut kept = now.shallow_clone();
    for op in ops {
        match op {
            Op::Layer(layer) => now = layer.forward(&now, pass)?,
            // In the order `channel·squares + square` whatever the strides.
            Op::Flatten => now = now.f_flatten(1, -1)?,
            Op::Keep => kept = now.shallow_clone(),
            Op::Add => now = now.f_add(&kept)?.f_relu_()?,
            Op::Append(layer) => {
                let more = layer.forward(&means_and_maxima(&kept)?, pass)?;
                now = Tensor::f_cat(&[now.f_to_kind(more.kind())?, more], 1)?;
            }
        }
    }
    Ok(now)
}

/// Returns the means of a board's channels over its squares, then the maxima, `[batch, 2 · channels]`.
fn means_and_maxima(board: &Tensor) -> Result<Tensor, TorchError> {
    let squares = [2i64, 3];
    let both = [
        board.f_mean_dim(squares.as_slice(), false, None)?,
        board.f_amax(squares.as_slice(), false)?,
    ];
    Ok(Tensor::f_cat(&both, 1)?)
}

impl Op {
    fn new(step: Step, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        Ok(match step {
            Step::Layer(layer) => Self::Layer(Box::new(Layer::new(layer, from)?)),
            Step::Flatten(..) => Self::Flatten,
            Step::Keep => Self::Keep,
            Step::Add(_) => Self::Add,
            Step::Append(layer) => Self::Append(Box::new(Layer::new(layer, from)?)),
        })
    }
}

impl Layer {
    fn new(step: TowerLayer, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        let name = step.variable.as_str();
        let variables = match step.has_norm {
            true => LayerVariables::ConvNorm(ConvNorm::new(from, name)?),
            false => LayerVariables::Affine(Affine::new(from, name)?),
        };
        let pooling = match step.pooled {
            0 => None,
            _ => Some(Affine::new(from, &step.pooling_variable)?),
        };
        Ok(Self {
            step,
            variables,
            pooling,
        })
    }

    fn forward(&self, values: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let mut own = match &self.variables {
            LayerVariables::ConvNorm(conv) => conv.forward(values, pass)?,
            LayerVariables::Affine(layer) => match self.step.shape.kind {
                onnx::Kind::Conv(_) => layer.convolve(values, pass.kind)?,
                _ => layer.forward(values, Kind::Float)?,
            },
        };
        match &self.pooling {
            Some(linear) => self.pool(&own, linear, pass),
            None if self.step.has_relu => Ok(own.f_relu_()?),
            None => Ok(own),
        }
    }

    fn pool(&self, board: &Tensor, linear: &Affine, pass: Pass) -> Result<Tensor, TorchError> {
        let dims = [self.step.kept() as i64, self.step.pooled as i64];
        // The gradient of a split is a concatenation. Two narrowed views would each have a gradient padded with zeros, and adding
        // them takes a fifth of a step.
        let parts = board.f_split_with_sizes(dims.as_slice(), 1)?;
        let [own, pooled] = parts.as_slice() else {
            return Err(TorchError::new("a split into two gave another number"));
        };
        let pooled = pooled.f_relu()?;
        let bias = linear.forward(&means_and_maxima(&pooled)?, pass.kind)?;
        Ok(own.f_add(&bias.f_unsqueeze(-1)?.f_unsqueeze(-1)?)?.f_relu_()?)
    }

    /// Takes the weights of [`Layer::fold`].
    fn unfold(&self, weights: &TowerWeights) -> Result<(), TorchError> {
        let parts = self.step.parts();
        let mut parts = parts.iter().map(|part| weights.layer(&part.name));
        let Some(own) = parts.next() else { return Ok(()) };
        let (mut numbers, mut bias) = (own.weights.clone(), own.bias.clone());
        if let (Some(linear), Some(pooled), Some(last)) = (&self.pooling, parts.next(), parts.next()) {
            // The outputs of the pooled layer come after the others.
            numbers.extend_from_slice(&pooled.weights);
            bias.extend_from_slice(&pooled.bias);
            linear.unfold(&last.weights, &last.bias)?;
        }
        match &self.variables {
            LayerVariables::ConvNorm(conv) => conv.unfold(&numbers, &bias),
            LayerVariables::Affine(layer) => layer.unfold(&numbers, &bias),
        }
    }

    /// Returns the layer as a file holds it ([`TowerLayer::parts`]).
    fn fold(&self) -> Result<Vec<Folded>, TorchError> {
        let (mut weights, mut bias) = match &self.variables {
            LayerVariables::ConvNorm(conv) => conv.fold()?,
            LayerVariables::Affine(layer) => layer.fold()?,
        };
        let kept = self.step.kept();
        let mut others = vec![(
            weights.split_off(kept * self.step.shape.taps()),
            bias.split_off(kept),
        )];
        if let Some(linear) = &self.pooling {
            others.push(linear.fold()?);
        }
        let numbers = [(weights, bias)].into_iter().chain(others);
        let parts = self.step.parts().into_iter().zip(numbers);
        let layers = parts.map(|(shape, (weights, bias))| Folded { shape, weights, bias });
        Ok(layers.collect())
    }
}
