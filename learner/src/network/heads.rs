//! The heads over a tower: policy and value.
//!
//! The fully connected layers always compute in f32: they cost little, and bf16 would round a value to 8 bits.

use config::ValueHead;
use onnx::{PolicyHead as FoldedPolicy, ValueHead as FoldedValue};
use tch::{Kind, Tensor};

use super::{
    Outputs, Pass, PolicyShape, TowerShape, ValueLogits,
    layers::{Conv, ConvNorm, Linear, NamedTensors},
    pooling::PooledConv,
};
use crate::torch::TorchError;

/// All heads of a tower.
#[derive(Debug)]
pub(super) struct Heads {
    policy_conv: PooledConv,
    policy_output: PolicyOutput,
    value_conv: ConvNorm,
    value_hidden: Linear,
    value_output: Linear,
    value_head: ValueHead,
}

/// The last layer of a policy.
#[derive(Debug)]
enum PolicyOutput {
    Dense(Linear),
    Planes(Conv),
}

impl Heads {
    pub(super) fn new(shape: &TowerShape, from: &mut NamedTensors<'_>) -> Result<Self, TorchError> {
        Ok(Self {
            policy_conv: PooledConv::new(from, "policy", "policy.pooling", shape.pooled_in_policy())?,
            policy_output: PolicyOutput::new(shape, from, "policy.output")?,
            value_conv: ConvNorm::new(from, "value")?,
            value_hidden: Linear::new(from, "value.hidden")?,
            value_output: Linear::new(from, "value.output")?,
            value_head: shape.value_head,
        })
    }

    /// Computes all outputs from the tower's last board, `[batch, filters, 8, 8]`.
    pub(super) fn forward(&self, board: &Tensor, pass: Pass) -> Result<Outputs, TorchError> {
        let policy = self.policy_conv.forward(board, pass)?;
        let logits = self.policy_output.forward(&policy, pass)?;
        let value = flatten(&self.value_conv.forward(board, pass)?.f_relu_()?)?;
        let hidden = self.value_hidden.forward(&value, Kind::Float)?.f_relu_()?;
        let output = self.value_output.forward(&hidden, Kind::Float)?;
        let (values, value_logits) = match self.value_head {
            ValueHead::Scalar => (output.f_tanh()?.f_flatten(0, -1)?, None),
            ValueHead::Wdl => {
                let outcomes = output.f_softmax(1, Kind::Float)?;
                let values = outcomes.f_select(1, 0)?.f_sub(&outcomes.f_select(1, 2)?)?;
                (values, Some(ValueLogits::Outcomes(output)))
            }
        };
        Ok(Outputs {
            logits,
            values,
            value_logits,
        })
    }

    /// Takes the weights of [`Heads::fold`].
    pub(super) fn unfold(&self, policy: &FoldedPolicy, value: &FoldedValue) -> Result<(), TorchError> {
        match (&self.policy_output, policy) {
            (PolicyOutput::Dense(output), FoldedPolicy::Dense { conv, linear }) => {
                self.policy_conv.unfold(conv, None)?;
                output.unfold(linear)?;
            }
            (
                PolicyOutput::Planes(output),
                FoldedPolicy::Planes {
                    conv,
                    pooling,
                    planes,
                },
            ) => {
                self.policy_conv.unfold(conv, pooling.as_ref())?;
                output.unfold(planes)?;
            }
            _ => {
                return Err(TorchError::new(
                    "the policies of two networks have different forms",
                ));
            }
        }
        self.value_conv.unfold(&value.conv)?;
        self.value_hidden.unfold(&value.hidden)?;
        self.value_output.unfold(&value.output)
    }

    pub(super) fn fold(&self) -> Result<(FoldedPolicy, FoldedValue), TorchError> {
        let (conv, pooling) = self.policy_conv.fold()?;
        let policy = match &self.policy_output {
            PolicyOutput::Dense(linear) => FoldedPolicy::Dense {
                conv,
                linear: linear.fold()?,
            },
            PolicyOutput::Planes(planes) => FoldedPolicy::Planes {
                conv,
                pooling,
                planes: planes.fold()?,
            },
        };
        let value = FoldedValue {
            conv: self.value_conv.fold()?,
            hidden: self.value_hidden.fold()?,
            output: self.value_output.fold()?,
        };
        Ok((policy, value))
    }
}

impl PolicyOutput {
    fn new(shape: &TowerShape, from: &mut NamedTensors<'_>, name: &str) -> Result<Self, TorchError> {
        Ok(match shape.policy {
            PolicyShape::Dense { .. } => Self::Dense(Linear::new(from, name)?),
            PolicyShape::Planes { .. } => Self::Planes(Conv::new(from, name)?),
        })
    }

    /// Returns logits, f32 `[batch, actions]`.
    fn forward(&self, policy: &Tensor, pass: Pass) -> Result<Tensor, TorchError> {
        let logits = match self {
            Self::Dense(linear) => linear.forward(&flatten(policy)?, Kind::Float)?,
            Self::Planes(conv) => flatten(&conv.forward(policy, pass)?)?,
        };
        Ok(logits.f_to_kind(Kind::Float)?)
    }
}

/// Reshapes `[batch, channels, 8, 8]` to `[batch, channels·64]`, in the order `channel·64 + rank·8 + file` whatever the strides.
fn flatten(board: &Tensor) -> Result<Tensor, TorchError> {
    Ok(board.f_flatten(1, -1)?)
}
