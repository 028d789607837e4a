//! The residual tower: its forward pass, and its folded form for export.

use onnx::{Block as FoldedBlock, SqueezeExcitation, TowerWeights};
use tch::Tensor;

use super::{
    Outputs, Pass, TowerShape,
    heads::Heads,
    layers::{ConvNorm, Linear, NamedTensors},
    pooling::PooledConv,
};
use crate::torch::TorchError;

/// The layers of a tower.
#[derive(Debug)]
pub(super) struct Tower {
    input: ConvNorm,
    blocks: Vec<Block>,
    heads: Heads,
}

#[derive(Debug)]
struct Block {
    first: PooledConv,
    second: ConvNorm,
    squeeze_excite: Option<SqueezeExcite>,
}

/// Squeeze-excitation (Hu et al., 2018).
#[derive(Debug)]
struct SqueezeExcite {
    squeeze: Linear,
    excite: Linear,
}

impl Tower {
    pub(super) fn new(shape: &TowerShape, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        Ok(Self {
            input: ConvNorm::new(from, "input")?,
            blocks: (0..shape.blocks)
                .map(|block| Block::new(shape, from, block))
                .collect::<Result<_, _>>()?,
            heads: Heads::new(shape, from)?,
        })
    }

    /// Evaluates `planes`, f32 `[batch, planes, 8, 8]` on the network's device.
    pub(super) fn forward(&self, planes: &Tensor, pass: Pass) -> Result<Outputs, TorchError> {
        let planes = planes.f_to_kind(pass.kind)?;
        let mut board = self.input.forward(&planes, pass)?.f_relu_()?;
        for block in &self.blocks {
            board = block.forward(&board, pass)?;
        }
        self.heads.forward(&board, pass)
    }

    /// Takes the weights of [`Tower::fold`] of a tower of the same shape.
    pub(super) fn unfold(&self, weights: &TowerWeights) -> Result<(), TorchError> {
        self.input.unfold(&weights.input)?;
        for (block, weights) in self.blocks.iter().zip(&weights.blocks) {
            block.unfold(weights)?;
        }
        self.heads.unfold(&weights.policy, &weights.value)
    }

    /// Returns the weights, with the normalisations folded into the convolutions.
    pub(super) fn fold(&self) -> Result<TowerWeights, TorchError> {
        let (policy, value) = self.heads.fold()?;
        Ok(TowerWeights {
            input: self.input.fold()?,
            blocks: self.blocks.iter().map(Block::fold).collect::<Result<_, _>>()?,
            policy,
            value,
        })
    }
}

impl Block {
    fn new(shape: &TowerShape, source: &mut NamedTensors<'_>, number: u32) -> Result<Self, TorchError> {
        let name = |part: &str| format!("block{number}.{part}");
        let squeeze_excite = match shape.squeeze_excitation {
            0 => None,
            _ => Some(SqueezeExcite {
                squeeze: Linear::new(source, &name("squeeze"))?,
                excite: Linear::new(source, &name("excite"))?,
            }),
        };
        let pooled = shape.pooled_in(number);
        Ok(Self {
            first: PooledConv::new(source, &name("first"), &name("pooling"), pooled)?,
            second: ConvNorm::new(source, &name("second"))?,
            squeeze_excite,
        })
    }

    fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let first = self.first.forward(board, pass)?;
        let mut second = self.second.forward(&first, pass)?;
        if let Some(squeeze_excite) = &self.squeeze_excite {
            second = squeeze_excite.forward(&second, pass)?;
        }
        Ok(second.f_add(board)?.f_relu_()?)
    }

    fn unfold(&self, weights: &FoldedBlock) -> Result<(), TorchError> {
        self.first.unfold(&weights.first, weights.pooling.as_ref())?;
        self.second.unfold(&weights.second)?;
        if let (Some(own), Some(gate)) = (&self.squeeze_excite, &weights.gate) {
            own.squeeze.unfold(&gate.squeeze)?;
            own.excite.unfold(&gate.excite)?;
        }
        Ok(())
    }

    fn fold(&self) -> Result<FoldedBlock, TorchError> {
        let squeeze_excite = match &self.squeeze_excite {
            None => None,
            Some(squeeze_excite) => Some(SqueezeExcitation {
                squeeze: squeeze_excite.squeeze.fold()?,
                excite: squeeze_excite.excite.fold()?,
            }),
        };
        let (first, pooling) = self.first.fold()?;
        Ok(FoldedBlock {
            first,
            pooling,
            second: self.second.fold()?,
            gate: squeeze_excite,
        })
    }
}

impl SqueezeExcite {
    fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let means = board.f_mean_dim([2i64, 3].as_slice(), false, None)?;
        let squeezed = self.squeeze.forward(&means, pass.kind)?.f_relu_()?;
        let scale = self.excite.forward(&squeezed, pass.kind)?.f_sigmoid()?;
        Ok(board.f_mul(&scale.f_unsqueeze(-1)?.f_unsqueeze(-1)?)?)
    }
}
