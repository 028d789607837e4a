//! Weights of a residual tower as plain vectors, with batch normalisation folded into the convolutions.

use games::{RowLayout, planes::SQUARES};

/// A convolution over the 8×8 board, stride 1, padded so that the board keeps its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    /// Number of output channels.
    pub outputs: usize,
    /// Number of input channels.
    pub inputs: usize,
    /// Side of the kernel: 1 or 3.
    pub kernel: usize,
    /// Weights, `[outputs][inputs][kernel][kernel]`, row-major.
    pub weights: Vec<f32>,
    /// Biases, `[outputs]`.
    pub bias: Vec<f32>,
}

/// A fully connected layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// Number of outputs.
    pub outputs: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Weights, `[outputs][inputs]`, row-major (torch's order).
    pub weights: Vec<f32>,
    /// Biases, `[outputs]`.
    pub bias: Vec<f32>,
}

/// Global pooling (Wu, 2019) beside a convolution `beside`: `relu(beside(x) + linear(mean and maximum of relu(conv(x))))`,
/// with mean and maximum over the board. Wu's third number, a mean scaled by the board's size, is left out, because the
/// board is always 8×8.
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalPooling {
    /// Convolution filters → pooled channels, with the kernel size of `beside`.
    pub conv: Conv,
    /// Linear layer: means of the pooled channels, then maxima → channels of `beside`.
    pub linear: Linear,
}

/// Returns the numbers of the two blocks with global pooling, in towers that pool: the first of the middle third and the first of the
/// last third, as in KataGo's networks of six blocks. The two numbers are equal for a tower of one block.
pub fn pooled_blocks(blocks: usize) -> [usize; 2] {
    [blocks / 3, 2 * blocks / 3]
}

/// Residual block: `relu(x + second(relu(first(x))))`. The output of the global pooling is added to `first(x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Convolution 3×3, filters → filters that are not pooled.
    pub first: Conv,
    /// Global pooling beside `first`, if the block has it.
    pub pooling: Option<GlobalPooling>,
    /// Convolution 3×3, filters that are not pooled → filters.
    pub second: Conv,
}

/// Policy head: from the filters of the tower to one logit for each action.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyHead {
    /// Head for actions that are not planes (Paco Ŝako 132, Othello 65, Connect Four 7): `linear(relu(conv(x)))`.
    Dense {
        /// Convolution 1×1, filters → channels.
        conv: Conv,
        /// Linear layer, channels·64 → actions.
        linear: Linear,
    },
    /// Head for actions that are planes of squares (chess: 73·64): `planes(relu(conv(x)))`, flattened `[plane][square]`.
    Planes {
        /// Convolution 3×3, filters → filters that are not pooled.
        conv: Conv,
        /// Global pooling beside `conv`, if the head has it. (The dense head has none, because it sees the whole board.)
        pooling: Option<GlobalPooling>,
        /// Convolution 3×3, filters that are not pooled → actions / 64.
        planes: Conv,
    },
}

/// Value head: `y = output(relu(hidden(relu(conv(x)))))`, for the player to act. If `y` is one number, the value is
/// `tanh(y)`. If `y` has the logits of a win, a draw and a loss, the value is the probability of a win minus that of a
/// loss.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueHead {
    /// Convolution 1×1, filters → channels.
    pub conv: Conv,
    /// Hidden layer, channels·64 → hidden.
    pub hidden: Linear,
    /// Output layer, hidden → 1 or 3.
    pub output: Linear,
}

impl ValueHead {
    /// True if the head has three outcomes: win, draw and loss.
    pub fn has_outcomes(&self) -> bool {
        self.output.outputs == 3
    }
}

/// Weights of a tower with its heads.
#[derive(Clone, Debug, PartialEq)]
pub struct TowerWeights {
    /// Input convolution 3×3, planes → filters, followed by a relu.
    pub input: Conv,
    /// Residual blocks.
    pub blocks: Vec<Block>,
    /// Policy head.
    pub policy: PolicyHead,
    /// Value head.
    pub value: ValueHead,
}

/// Error: weights do not fit each other or the layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TowerError {
    /// A layer's shape does not fit its neighbours.
    #[error("{layer}: the shape (outputs, inputs, kernel) is {found:?} instead of {expected:?}")]
    Shape {
        /// Name of the layer, e.g. `block2.first`.
        layer: String,
        /// Outputs, inputs and kernel that the layer has.
        found: (usize, usize, usize),
        /// Outputs, inputs and kernel that the layer must have.
        expected: (usize, usize, usize),
    },
    /// A vector's length does not fit its layer's shape.
    #[error("{layer}: {found} {what}, {expected} expected")]
    Length {
        /// Name of the layer.
        layer: String,
        /// `weights` or `biases`.
        what: &'static str,
        /// Number of elements found.
        found: usize,
        /// Number of elements expected.
        expected: usize,
    },
    /// A weight is infinite or not a number.
    #[error("{layer}: a weight is not finite")]
    NotFinite {
        /// Name of the layer.
        layer: String,
    },
    /// The layout contradicts itself, or its policy is not a whole number of planes.
    #[error("{0}")]
    Layout(String),
}

impl TowerWeights {
    /// Returns the number of channels of the tower.
    pub fn filters(&self) -> usize {
        self.input.outputs
    }

    /// Returns the number of weights and biases.
    pub fn parameters(&self) -> usize {
        let mut sum = 0;
        self.visit(|_, weights, bias, _, _| sum += weights.len() + bias.len());
        sum
    }

    /// Checks that every layer fits its neighbours and `layout`, and that every number is finite.
    ///
    /// # Errors
    /// [`TowerError`] that names the first layer that does not.
    pub fn check(&self, layout: &RowLayout) -> Result<(), TowerError> {
        layout
            .check()
            .map_err(|error| TowerError::Layout(error.to_string()))?;
        let mut fault = None;
        self.visit(|layer, weights, bias, found, expected| {
            if fault.is_none() {
                fault = check_layer(layer, weights, bias, found, expected).err();
            }
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        let stack = layout
            .stack()
            .map_err(|error| TowerError::Layout(error.to_string()))?;
        let (planes, actions) = (stack.planes as usize, layout.actions as usize);
        if self.input.inputs != planes {
            return Err(TowerError::Layout(format!(
                "the tower takes {} planes, the layout has {planes}",
                self.input.inputs
            )));
        }
        let logits = match &self.policy {
            PolicyHead::Dense { linear, .. } => linear.outputs,
            PolicyHead::Planes { planes, .. } => planes.outputs * SQUARES,
        };
        if logits != actions {
            return Err(TowerError::Layout(format!(
                "the tower gives {logits} logits, the layout has {actions} actions"
            )));
        }
        Ok(())
    }

    /// Calls `see` with every layer: name, weights, biases, shape, and the shape that the neighbours require.
    fn visit(&self, mut see: impl FnMut(&str, &[f32], &[f32], Shape, Shape)) {
        let filters = self.filters();
        let mut conv = |name: &str, conv: &Conv, expected: Shape| {
            let shape = (conv.outputs, conv.inputs, conv.kernel);
            see(name, &conv.weights, &conv.bias, shape, expected);
        };
        conv("input", &self.input, (filters, self.input.inputs, 3));
        for (number, block) in self.blocks.iter().enumerate() {
            let pooled = pooled(block.pooling.as_ref());
            let kept = filters.saturating_sub(pooled);
            conv(&format!("block{number}.first"), &block.first, (kept, filters, 3));
            if let Some(pooling) = &block.pooling {
                let name = format!("block{number}.first.pooled");
                conv(&name, &pooling.conv, (pooled, filters, 3));
            }
            conv(
                &format!("block{number}.second"),
                &block.second,
                (filters, kept, 3),
            );
        }
        match &self.policy {
            PolicyHead::Dense { conv: reduce, .. } => {
                conv("policy.conv", reduce, (reduce.outputs, filters, 1));
            }
            PolicyHead::Planes {
                conv: same,
                pooling,
                planes,
            } => {
                let pooled = pooled(pooling.as_ref());
                let kept = filters.saturating_sub(pooled);
                conv("policy.conv", same, (kept, filters, 3));
                if let Some(pooling) = pooling {
                    conv("policy.conv.pooled", &pooling.conv, (pooled, filters, 3));
                }
                conv("policy.planes", planes, (planes.outputs, kept, 3));
            }
        }
        let value = &self.value;
        conv("value.conv", &value.conv, (value.conv.outputs, filters, 1));

        let mut linear = |name: &str, linear: &Linear, expected: (usize, usize)| {
            let shape = (linear.outputs, linear.inputs, 1);
            let expected = (expected.0, expected.1, 1);
            see(name, &linear.weights, &linear.bias, shape, expected);
        };
        for (number, block) in self.blocks.iter().enumerate() {
            if let Some(pooling) = &block.pooling {
                let expected = (block.first.outputs, 2 * pooling.conv.outputs);
                linear(&format!("block{number}.pooling"), &pooling.linear, expected);
            }
        }
        match &self.policy {
            PolicyHead::Dense { conv, linear: last } => {
                linear("policy.linear", last, (last.outputs, conv.outputs * SQUARES));
            }
            PolicyHead::Planes {
                conv,
                pooling: Some(pooling),
                ..
            } => {
                let expected = (conv.outputs, 2 * pooling.conv.outputs);
                linear("policy.pooling", &pooling.linear, expected);
            }
            PolicyHead::Planes { pooling: None, .. } => {}
        }
        let hidden = value.hidden.outputs;
        linear(
            "value.hidden",
            &value.hidden,
            (hidden, value.conv.outputs * SQUARES),
        );
        let outputs = if value.has_outcomes() { 3 } else { 1 };
        linear("value.output", &value.output, (outputs, hidden));
    }
}

/// Returns the number of pooled channels.
fn pooled(pooling: Option<&GlobalPooling>) -> usize {
    pooling.map_or(0, |pooling| pooling.conv.outputs)
}

/// Shape of a layer: outputs, inputs, kernel.
pub(crate) type Shape = (usize, usize, usize);

pub(crate) fn check_layer(
    layer: &str,
    weights: &[f32],
    bias: &[f32],
    found: Shape,
    expected: Shape,
) -> Result<(), TowerError> {
    let layer = layer.to_owned();
    let (outputs, inputs, kernel) = expected;
    if found != expected || outputs == 0 || inputs == 0 {
        return Err(TowerError::Shape {
            layer,
            found,
            expected,
        });
    }
    let numbers = [
        ("weights", weights.len(), outputs * inputs * kernel * kernel),
        ("biases", bias.len(), outputs),
    ];
    for (what, found, expected) in numbers {
        if found != expected {
            return Err(TowerError::Length {
                layer,
                what,
                found,
                expected,
            });
        }
    }
    if weights.iter().chain(bias).any(|number| !number.is_finite()) {
        return Err(TowerError::NotFinite { layer });
    }
    Ok(())
}
