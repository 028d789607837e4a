//! Outputs of a network.

use tch::Tensor;

/// Outputs of a forward pass.
#[derive(Debug)]
pub struct Outputs {
    /// Policy logits, f32 `[batch, actions]`. The fish-eye network gives `[parts, moves]`, the parts of all positions back to
    /// back.
    pub logits: Tensor,
    /// Values from the view of the player to act, f32 `[batch]`: in [-1, 1], or in [0, 1] in the fish-eye network.
    pub values: Tensor,
    /// Logits from which the values are computed, if the loss of the value is a function of them.
    pub value_logits: Option<ValueLogits>,
}

/// Logits from which values are computed.
#[derive(Debug)]
pub enum ValueLogits {
    /// The value is the sigmoid of f32 `[batch]`.
    Sigmoid(Tensor),
    /// The value is win - loss of the softmax of f32 `[batch, 3]`: win, draw and loss.
    Outcomes(Tensor),
}
