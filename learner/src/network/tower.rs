//! The residual tower: its forward pass, and its folded form for export.

use onnx::{Block as FoldedBlock, TowerWeights};
use tch::Tensor;

use super::{
    Outputs, Pass, TowerShape,
    heads::Heads,
    layers::{ConvNorm, NamedTensors},
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
        let pooled = shape.pooled_in(number);
        Ok(Self {
            first: PooledConv::new(source, &name("first"), &name("pooling"), pooled)?,
            second: ConvNorm::new(source, &name("second"))?,
        })
    }

    fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let first = self.first.forward(board, pass)?;
        let second = self.second.forward(&first, pass)?;
        Ok(second.f_add(board)?.f_relu_()?)
    }

    fn unfold(&self, weights: &FoldedBlock) -> Result<(), TorchError> {
        self.first.unfold(&weights.first, weights.pooling.as_ref())?;
        self.second.unfold(&weights.second)
    }

    fn fold(&self) -> Result<FoldedBlock, TorchError> {
        let (first, pooling) = self.first.fold()?;
        Ok(FoldedBlock {
            first,
            pooling,
            second: self.second.fold()?,
        })
    }
}
