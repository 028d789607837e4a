//! The residual tower: its forward pass, and the same network folded for export.

use onnx::{Block as FoldedBlock, PolicyHead, SqueezeExcitation, TowerWeights, ValueHead};
use tch::{Kind, Tensor};

use super::{
    Outputs, Pass, PolicyShape, TowerShape,
    layers::{Conv, ConvNorm, Linear, Source},
};
use crate::torch::TorchError;

/// The layers of a tower.
#[derive(Debug)]
pub(super) struct Tower {
    input: ConvNorm,
    blocks: Vec<Block>,
    policy_conv: ConvNorm,
    policy_output: PolicyOutput,
    value_conv: ConvNorm,
    value_hidden: Linear,
    value_output: Linear,
}

#[derive(Debug)]
struct Block {
    first: ConvNorm,
    second: ConvNorm,
    gate: Option<Gate>,
}

/// Squeeze-excitation (Hu et al., 2018).
#[derive(Debug)]
struct Gate {
    squeeze: Linear,
    excite: Linear,
}

#[derive(Debug)]
enum PolicyOutput {
    Dense(Linear),
    Planes(Conv),
}

impl Tower {
    pub(super) fn new(shape: &TowerShape, from: &mut Source<'_>) -> Result<Self, TorchError> {
        let blocks = (0..shape.blocks)
            .map(|block| Block::new(from, block, shape.squeeze_excitation > 0))
            .collect::<Result<_, _>>()?;
        let policy_output = match shape.policy {
            PolicyShape::Dense { .. } => PolicyOutput::Dense(Linear::new(from, "policy.output")?),
            PolicyShape::Planes { .. } => PolicyOutput::Planes(Conv::new(from, "policy.output")?),
        };
        Ok(Self {
            input: ConvNorm::new(from, "input")?,
            blocks,
            policy_conv: ConvNorm::new(from, "policy")?,
            policy_output,
            value_conv: ConvNorm::new(from, "value")?,
            value_hidden: Linear::new(from, "value.hidden")?,
            value_output: Linear::new(from, "value.output")?,
        })
    }

    /// Evaluates `planes`, f32 `[batch, planes, 8, 8]` on the network's device. The fully connected layers of the heads
    /// always compute in f32: they cost next to nothing, and a value rounded to 8 bits would be a coarse one.
    pub(super) fn forward(&self, planes: &Tensor, pass: Pass) -> Result<Outputs, TorchError> {
        let planes = planes.f_to_kind(pass.kind)?;
        let mut board = self.input.forward(&planes, pass)?.f_relu_()?;
        for block in &self.blocks {
            board = block.forward(&board, pass)?;
        }
        let policy = self.policy_conv.forward(&board, pass)?.f_relu_()?;
        let logits = match &self.policy_output {
            PolicyOutput::Dense(linear) => linear.forward(&flatten(&policy)?, Kind::Float)?,
            PolicyOutput::Planes(conv) => flatten(&conv.forward(&policy, pass)?)?,
        };
        let value = flatten(&self.value_conv.forward(&board, pass)?.f_relu_()?)?;
        let hidden = self.value_hidden.forward(&value, Kind::Float)?.f_relu_()?;
        let output = self.value_output.forward(&hidden, Kind::Float)?;
        Ok(Outputs {
            logits: logits.f_to_kind(Kind::Float)?,
            values: output.f_tanh()?.f_flatten(0, -1)?,
            value_logits: None,
        })
    }

    /// With the normalisations folded into the convolutions.
    pub(super) fn fold(&self) -> Result<TowerWeights, TorchError> {
        let conv = self.policy_conv.fold()?;
        Ok(TowerWeights {
            input: self.input.fold()?,
            blocks: self.blocks.iter().map(Block::fold).collect::<Result<_, _>>()?,
            policy: match &self.policy_output {
                PolicyOutput::Dense(linear) => PolicyHead::Dense {
                    conv,
                    linear: linear.fold()?,
                },
                PolicyOutput::Planes(planes) => PolicyHead::Planes {
                    conv,
                    planes: planes.fold()?,
                },
            },
            value: ValueHead {
                conv: self.value_conv.fold()?,
                hidden: self.value_hidden.fold()?,
                output: self.value_output.fold()?,
            },
        })
    }
}

impl Block {
    fn new(source: &mut Source<'_>, number: u32, has_gate: bool) -> Result<Self, TorchError> {
        let name = |part: &str| format!("block{number}.{part}");
        let gate = if has_gate {
            Some(Gate {
                squeeze: Linear::new(source, &name("squeeze"))?,
                excite: Linear::new(source, &name("excite"))?,
            })
        } else {
            None
        };
        Ok(Self {
            first: ConvNorm::new(source, &name("first"))?,
            second: ConvNorm::new(source, &name("second"))?,
            gate,
        })
    }

    fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let first = self.first.forward(board, pass)?.f_relu_()?;
        let mut second = self.second.forward(&first, pass)?;
        if let Some(gate) = &self.gate {
            second = gate.forward(&second, pass)?;
        }
        Ok(second.f_add(board)?.f_relu_()?)
    }

    fn fold(&self) -> Result<FoldedBlock, TorchError> {
        let gate = match &self.gate {
            None => None,
            Some(gate) => Some(SqueezeExcitation {
                squeeze: gate.squeeze.fold()?,
                excite: gate.excite.fold()?,
            }),
        };
        Ok(FoldedBlock {
            first: self.first.fold()?,
            second: self.second.fold()?,
            gate,
        })
    }
}

impl Gate {
    fn forward(&self, board: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let means = board.f_mean_dim([2i64, 3].as_slice(), false, None)?;
        let squeezed = self.squeeze.forward(&means, pass.kind)?.f_relu_()?;
        let scale = self.excite.forward(&squeezed, pass.kind)?.f_sigmoid()?;
        Ok(board.f_mul(&scale.f_unsqueeze(-1)?.f_unsqueeze(-1)?)?)
    }
}

/// `[batch, channels, 8, 8]` to `[batch, channels·64]`, in the order `channel·64 + rank·8 + file` whatever the strides.
fn flatten(board: &Tensor) -> Result<Tensor, TorchError> {
    Ok(board.f_flatten(1, -1)?)
}
