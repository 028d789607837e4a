//! The residual tower as data: its sizes, and from them the list of its steps.
//!
//! The learner's forward pass, the writer and the reader of ONNX files, random weights and the reference evaluation walk the same
//! list ([`TowerShape::trunk`], [`TowerShape::policy`], [`TowerShape::value`]).

use games::{PlaneStack, PolicyHead, RowLayout};
use serde::{Deserialize, Serialize};

use crate::{
    file::OnnxError,
    weights::{Kind, LayerShape, Weights},
};

/// Sizes of a residual tower: everything that determines which variables it has. Stored with each checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TowerShape {
    /// Number of ranks of the board.
    pub height: usize,
    /// Number of files of the board.
    pub width: usize,
    /// Number of input planes.
    pub planes: usize,
    /// Number of policy logits.
    pub actions: usize,
    /// Number of residual blocks.
    pub blocks: usize,
    /// Number of channels of the tower.
    pub filters: usize,
    /// Number of channels that are pooled over the board, in [`pooled_blocks`] and in a policy of planes; 0: none.
    #[serde(rename = "global_pooling")]
    pub pooling: usize,
    /// The policy head.
    pub policy: PolicyShape,
    /// Number of channels of the value head.
    pub value_channels: usize,
    /// Width of the value head's hidden layer.
    pub value_hidden: usize,
    /// True if the value head predicts the probabilities of a win, a draw and a loss. Written as `value_head`: `scalar` or `wdl`.
    #[serde(rename = "value_head", with = "value_head")]
    pub outcomes: bool,
    /// True if the network also predicts the owner of each square at the end of the game and the score. Only training uses this head:
    /// files of weights hold it, ONNX files do not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub territory: bool,
}

/// The two forms of policy head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyShape {
    /// A fully connected layer, for any actions.
    Dense {
        /// Channels before the linear layer.
        channels: usize,
    },
    /// Convolutions, for actions numbered `plane·squares + square`, and behind them actions that belong to the whole board, e.g. a
    /// pass.
    Planes {
        /// Number of planes.
        planes: usize,
        /// Number of actions that belong to the whole board. Their logits follow by a linear layer from the mean and the maximum over
        /// the board of each channel before the planes.
        #[serde(default, skip_serializing_if = "is_zero")]
        globals: usize,
    },
}

/// True for shapes without global actions, in which older versions wrote no number of them.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl PolicyShape {
    /// Returns the policy of convolutions for this many actions, at least one for each square.
    fn planes(actions: usize, squares: usize) -> Self {
        Self::Planes {
            planes: actions / squares.max(1),
            globals: actions % squares.max(1),
        }
    }
}

mod value_head {
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(outcomes: &bool, to: S) -> Result<S::Ok, S::Error> {
        (if *outcomes { "wdl" } else { "scalar" }).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
        match String::deserialize(from)?.as_str() {
            "wdl" => Ok(true),
            "scalar" => Ok(false),
            other => Err(D::Error::custom(format!("unknown value head `{other}`"))),
        }
    }
}

/// Returns the numbers of the two blocks with global pooling, in towers that pool: the first of the middle third and the first of the
/// last third, as in KataGo's networks of six blocks. The two numbers are equal for a tower of one block.
pub fn pooled_blocks(blocks: usize) -> [usize; 2] {
    [blocks / 3, 2 * blocks / 3]
}

/// A layer of a tower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TowerLayer {
    /// Name in files of weights, where variables are `<name>.weight`, or `<name>.conv.weight` and `<name>.norm.gain` of a layer with
    /// a normalisation.
    pub variable: String,
    /// Name in ONNX files, and sizes.
    pub shape: LayerShape,
    /// True if a batch normalisation follows. Files hold it folded into the weights.
    pub has_norm: bool,
    /// True if a ReLU follows.
    pub has_relu: bool,
    /// Global pooling (Wu, 2019): the means and maxima over the board of the last `pooled` outputs, after a ReLU, go through a linear
    /// layer and are added to the other outputs before the ReLU; the layer gives only these others. Wu's third number, a mean scaled
    /// by the board's size, is left out. 0: no pooling.
    pub pooled: usize,
    /// Name of the linear layer of the pooling in files of weights.
    pub pooling_variable: String,
}

impl TowerLayer {
    fn new(variable: impl Into<String>, shape: LayerShape) -> Self {
        Self {
            variable: variable.into(),
            shape,
            has_norm: false,
            has_relu: false,
            pooled: 0,
            pooling_variable: String::new(),
        }
    }

    fn relu(self) -> Self {
        Self {
            has_relu: true,
            ..self
        }
    }

    fn norm(self) -> Self {
        Self {
            has_norm: true,
            ..self
        }
    }

    fn pooling(self, pooled: usize, variable: String) -> Self {
        Self {
            pooled,
            pooling_variable: variable,
            ..self
        }
    }

    /// Returns the number of outputs that are not pooled.
    pub fn kept(&self) -> usize {
        self.shape.outputs.saturating_sub(self.pooled)
    }

    /// Returns the layers that a file holds in its place: the layer itself; with pooling the layer without the pooled outputs, the
    /// layer of the pooled outputs, and the linear layer.
    pub fn parts(&self) -> Vec<LayerShape> {
        let LayerShape {
            name, kind, inputs, ..
        } = &self.shape;
        let mut parts = vec![LayerShape::new(name, *kind, self.kept(), *inputs)];
        if self.pooled > 0 {
            let pooled = format!("{name}.pooled");
            parts.push(LayerShape::new(&pooled, *kind, self.pooled, *inputs));
            let name = format!("{pooled}.linear");
            parts.push(LayerShape::new(
                name,
                Kind::LinearAsConv,
                self.kept(),
                2 * self.pooled,
            ));
        }
        parts
    }
}

/// A step of a network's computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A layer.
    Layer(TowerLayer),
    /// The board becomes a list of numbers, `channel·squares + rank·width + file`. Has a name, and the length of the list.
    Flatten(&'static str, usize),
    /// The board is kept for the next [`Step::Add`].
    Keep,
    /// The kept board is added, and a ReLU follows. Has a name.
    Add(String),
    /// The means of the kept board's channels over its squares, then the maxima, go through a linear layer, whose outputs are appended
    /// to the list.
    Append(TowerLayer),
}

impl TowerShape {
    /// Returns the sizes of a tower of `blocks` × `filters` with the heads that fit `layout`.
    pub fn new(layout: &RowLayout, blocks: usize, filters: usize) -> Self {
        let actions = layout.actions as usize;
        let [planes, height, width] = layout.stack().map_or([0; 3], PlaneStack::shape);
        Self {
            height,
            width,
            planes,
            actions,
            blocks,
            filters,
            pooling: 0,
            policy: match layout.policy_head {
                PolicyHead::Planes => PolicyShape::planes(actions, height * width),
                PolicyHead::Dense | PolicyHead::PerPart => PolicyShape::Dense { channels: 32 },
            },
            value_channels: 8,
            value_hidden: 64,
            outcomes: false,
            territory: false,
        }
    }

    /// Returns the tower of an ONNX file: without the head that only training uses.
    #[must_use]
    pub const fn served(self) -> Self {
        Self {
            territory: false,
            ..self
        }
    }

    /// Returns the number of squares of the board.
    pub fn squares(&self) -> usize {
        self.height * self.width
    }

    /// Returns the steps from planes to the tower's last board.
    pub fn trunk(&self) -> Vec<Step> {
        let filters = self.filters;
        let conv = |name: &str, inputs| {
            TowerLayer::new(name, LayerShape::new(name, Kind::Conv(3), filters, inputs)).norm()
        };
        let mut steps = vec![Step::Layer(conv("input", self.planes).relu())];
        for number in 0..self.blocks {
            let block = format!("block{number}");
            let pooled = match pooled_blocks(self.blocks).contains(&number) {
                true => self.pooling,
                false => 0,
            };
            let first = conv(&format!("{block}.first"), filters).relu();
            let first = first.pooling(pooled, format!("{block}.pooling"));
            let second = conv(&format!("{block}.second"), first.kept());
            steps.extend([
                Step::Keep,
                Step::Layer(first),
                Step::Layer(second),
                Step::Add(block),
            ]);
        }
        steps
    }

    /// Returns the steps from the tower's last board to the policy's logits.
    pub fn policy(&self) -> Vec<Step> {
        let first = |kind, outputs| {
            let shape = LayerShape::new("policy.conv", kind, outputs, self.filters);
            TowerLayer::new("policy", shape).norm().relu()
        };
        let last = |name, kind, outputs, inputs| {
            Step::Layer(TowerLayer::new(
                "policy.output",
                LayerShape::new(name, kind, outputs, inputs),
            ))
        };
        match self.policy {
            PolicyShape::Dense { channels } => {
                let flat = channels * self.squares();
                vec![
                    Step::Layer(first(Kind::Conv(1), channels)),
                    Step::Flatten("policy", flat),
                    last("policy.linear", Kind::Linear, self.actions, flat),
                ]
            }
            PolicyShape::Planes { planes, globals } => {
                let first = first(Kind::Conv(3), self.filters).pooling(self.pooling, "policy.pooling".into());
                let channels = first.kept();
                let last = last("policy.planes", Kind::Conv(3), planes, channels);
                let flat = Step::Flatten("policy", planes * self.squares());
                if globals == 0 {
                    return vec![Step::Layer(first), last, flat];
                }
                let name = "policy.globals";
                let linear = LayerShape::new(name, Kind::Linear, globals, 2 * channels);
                let append = Step::Append(TowerLayer::new(name, linear));
                vec![Step::Layer(first), Step::Keep, last, flat, append]
            }
        }
    }

    /// Returns the steps from the tower's last board to the output of the value head: the logits of a win, a draw and a loss, or one
    /// number whose tanh is the value.
    pub fn value(&self) -> Vec<Step> {
        let conv = LayerShape::new("value.conv", Kind::Conv(1), self.value_channels, self.filters);
        let flat = self.value_channels * self.squares();
        let hidden = LayerShape::new("value.hidden", Kind::Linear, self.value_hidden, flat);
        let outputs = if self.outcomes { 3 } else { 1 };
        let output = LayerShape::new("value.output", Kind::Linear, outputs, self.value_hidden);
        vec![
            Step::Layer(TowerLayer::new("value", conv).norm().relu()),
            Step::Flatten("value", flat),
            Step::Layer(TowerLayer::new("value.hidden", hidden).relu()),
            Step::Layer(TowerLayer::new("value.output", output)),
        ]
    }

    /// Returns the steps from the tower's last board to one number for each square, and behind them the score. No steps without that
    /// head.
    pub fn territory(&self) -> Vec<Step> {
        if !self.territory {
            return Vec::new();
        }
        let [owners, score] = ["territory.owners", "territory.score"];
        let of_square = LayerShape::new(owners, Kind::Conv(1), 1, self.filters);
        let of_board = LayerShape::new(score, Kind::Linear, 1, 2 * self.filters);
        vec![
            Step::Keep,
            Step::Layer(TowerLayer::new(owners, of_square)),
            Step::Flatten("territory", self.squares()),
            Step::Append(TowerLayer::new(score, of_board)),
        ]
    }

    /// Returns all layers of an ONNX file in order.
    pub fn layers(&self) -> Vec<TowerLayer> {
        let steps = [self.trunk(), self.policy(), self.value()];
        layers(steps.into_iter().flatten())
    }

    /// Returns the layers that only training uses.
    pub fn training_layers(&self) -> Vec<TowerLayer> {
        layers(self.territory())
    }
}

/// Returns the layers among steps.
fn layers(steps: impl IntoIterator<Item = Step>) -> Vec<TowerLayer> {
    let layers = steps.into_iter().filter_map(|step| match step {
        Step::Layer(layer) | Step::Append(layer) => Some(layer),
        _ => None,
    });
    layers.collect()
}

/// Weights of a tower.
pub type TowerWeights = Weights<TowerShape>;

impl TowerWeights {
    /// Checks that every layer has the sizes of the shape, that the shape fits `layout`, and that every number is finite.
    ///
    /// # Errors
    /// [`OnnxError`] that names the first layer that does not.
    pub fn check(&self, layout: &RowLayout) -> Result<(), OnnxError> {
        let shape = &self.shape;
        layout.check().map_err(OnnxError::new)?;
        let stack = layout.stack().map_err(OnnxError::new)?;
        let logits = match shape.policy {
            PolicyShape::Dense { .. } => shape.actions,
            PolicyShape::Planes { planes, globals } => planes * shape.squares() + globals,
        };
        for (found, expected, what) in [
            (shape.height, stack.height, "ranks"),
            (shape.width, stack.width, "files"),
            (shape.planes, stack.planes, "input planes"),
            (logits, layout.actions, "logits"),
            (shape.actions, layout.actions, "actions"),
        ] {
            if found != expected as usize {
                return Err(OnnxError::new(format!(
                    "the tower has {found} {what}, the layout needs {expected}"
                )));
            }
        }
        let parts: Vec<LayerShape> = shape.layers().iter().flat_map(TowerLayer::parts).collect();
        self.check_layers(&parts)
    }
}
