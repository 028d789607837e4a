//! Global pooling (Wu, 2019): means and maxima of some channels over the board are a bias of the other channels.

use onnx::{Conv as FoldedConv, GlobalPooling};
use tch::Tensor;

use super::{
    Pass,
    layers::{ConvNorm, Linear, NamedTensors},
};
use crate::torch::TorchError;

/// A convolution, its normalisation and its ReLU. If channels are pooled, their means and maxima over the board go through a
/// linear layer and are added to the other channels before the ReLU. The output contains only these other channels.
///
/// KataGo normalises the other channels after the addition. Here all channels are normalised before it, so that the whole folds
/// into two convolutions.
#[derive(Debug)]
pub(super) struct PooledConv {
    conv: ConvNorm,
    pooling: Option<Pooling>,
}

#[derive(Debug)]
struct Pooling {
    channels: i64,
    linear: Linear,
}

impl PooledConv {
    /// Takes the variables of the convolution `conv`, whose last `channels` (0: none) are pooled, and of the linear layer `pooling`.
    pub(super) fn new(
        source: &mut NamedTensors<'_>,
        conv: &str,
        pooling: &str,
        channels: u32,
    ) -> Result<Self, TorchError> {
        let pooling = match channels {
            0 => None,
            _ => Some(Pooling {
                channels: channels.into(),
                linear: Linear::new(source, pooling)?,
            }),
        };
        Ok(Self {
            conv: ConvNorm::new(source, conv)?,
            pooling,
        })
    }

    pub(super) fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let mut own = self.conv.forward(board, pass)?;
        match &self.pooling {
            None => Ok(own.f_relu_()?),
            Some(pooling) => pooling.forward(&own, pass),
        }
    }

    /// Takes the weights of [`PooledConv::fold`].
    pub(super) fn unfold(
        &self,
        conv: &FoldedConv,
        pooling: Option<&GlobalPooling>,
    ) -> Result<(), TorchError> {
        match (&self.pooling, pooling) {
            (Some(own), Some(pooling)) => {
                self.conv.unfold(&join(conv, &pooling.conv))?;
                own.linear.unfold(&pooling.linear)
            }
            (None, None) => self.conv.unfold(conv),
            _ => Err(TorchError::new("only one of two networks pools here")),
        }
    }

    pub(super) fn fold(&self) -> Result<(FoldedConv, Option<GlobalPooling>), TorchError> {
        let conv = self.conv.fold()?;
        let Some(pooling) = &self.pooling else {
            return Ok((conv, None));
        };
        let kept = conv.outputs.saturating_sub(pooling.channels as usize);
        let (own, pooled) = split(conv, kept);
        let pooling = GlobalPooling {
            conv: pooled,
            linear: pooling.linear.fold()?,
        };
        Ok((own, Some(pooling)))
    }
}

impl Pooling {
    fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let dims = [board.size4()?.1 - self.channels, self.channels];
        // The gradient of a split is a concatenation. Two narrowed views would each have a gradient padded with zeros, and adding
        // them takes a fifth of a step.
        let parts = board.f_split_with_sizes(dims.as_slice(), 1)?;
        let [own, pooled] = parts.as_slice() else {
            return Err(TorchError::new("a split into two gave another number"));
        };
        let pooled = pooled.f_relu()?;
        let squares = [2i64, 3];
        let seen = [
            pooled.f_mean_dim(squares.as_slice(), false, None)?,
            pooled.f_amax(squares.as_slice(), false)?,
        ];
        let bias = self.linear.forward(&Tensor::f_cat(&seen, 1)?, pass.kind)?;
        Ok(own.f_add(&bias.f_unsqueeze(-1)?.f_unsqueeze(-1)?)?.f_relu_()?)
    }
}

/// Joins two convolutions of the same board: the output channels of `others` come after those of `kept`.
fn join(kept: &FoldedConv, others: &FoldedConv) -> FoldedConv {
    FoldedConv {
        outputs: kept.outputs + others.outputs,
        weights: [kept.weights.as_slice(), &others.weights].concat(),
        bias: [kept.bias.as_slice(), &others.bias].concat(),
        ..*kept
    }
}

/// Splits a convolution into its first `kept` output channels and the others.
fn split(conv: FoldedConv, kept: usize) -> (FoldedConv, FoldedConv) {
    let FoldedConv {
        outputs,
        inputs,
        kernel,
        mut weights,
        mut bias,
    } = conv;
    let part = |outputs, weights, bias| FoldedConv {
        outputs,
        inputs,
        kernel,
        weights,
        bias,
    };
    let others = weights.split_off(kept * inputs * kernel * kernel);
    let bias_of_others = bias.split_off(kept);
    (
        part(kept, weights, bias),
        part(outputs - kept, others, bias_of_others),
    )
}
