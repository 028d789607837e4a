//! Sizes and weights of a fish-eye network, as plain vectors.

use games::{RowForm, RowLayout, generator::expansion::EMBEDDING_ROWS, planes::SQUARES};
use serde::{Deserialize, Serialize};

use crate::weights::{Conv, Linear, TowerError, check_layer};

/// Sizes of a fish-eye network, which determine the shapes of its weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FishEyeShape {
    /// Number of rows of the embedding: the one-hot values, and spare rows.
    pub values: usize,
    /// Number of rows of a role matrix: `this`, the roles, and a last one that no imp has ("the path has ended").
    pub roles: usize,
    /// Most edges from the root to an imp.
    pub depth: usize,
    /// Number of logits of an imp.
    pub moves: usize,
    /// Number of grids of a position.
    pub grids: usize,
    /// Number of flags of a position.
    pub flags: usize,
    /// Number of symbols of a square.
    pub symbols: usize,
    /// Size of the vector of a sept.
    pub width: usize,
    /// Size of the hidden layer of the roll-up.
    pub rollup: usize,
    /// Size of the vector of a context.
    pub context: usize,
    /// Size of the vector of a path.
    pub path: usize,
    /// Number of channels of the convolutions over a position's grids.
    pub filters: usize,
    /// Number of convolutions over a position's grids.
    pub convolutions: usize,
    /// Number of channels before the linear layer over a position's grids.
    pub reduced: usize,
    /// Size of the vector of a position's grids.
    pub position: usize,
    /// Size of the vector of a position's examples; 0: the network takes none. Shapes of earlier builds do not have this field.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub examples: usize,
    /// Number of channels of the convolution over a view.
    pub view_filters: usize,
    /// Number of channels before the linear layer over a view.
    pub view_reduced: usize,
    /// Size of the vector of a view.
    pub view: usize,
    /// Size of the hidden layer of the policy.
    pub policy_hidden: usize,
    /// Size of the hidden layer of the value.
    pub value_hidden: usize,
    /// True if policy and value share one encoder, false if they are two networks. Shapes of earlier builds do not have
    /// this field.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub shared: bool,
}

const fn yes() -> bool {
    true
}

const fn is_true(is_shared: &bool) -> bool {
    *is_shared
}

const fn is_zero(size: &usize) -> bool {
    *size == 0
}

/// Prefix of the names of the value's own encoder.
pub const VALUE_ENCODER: &str = "value.";

/// Weights of a fish-eye network.
#[derive(Clone, Debug, PartialEq)]
pub struct FishEyeWeights {
    /// Sizes of the network.
    pub shape: FishEyeShape,
    /// Encoder of the policy, and of the value if they share it.
    pub encoder: EncoderWeights,
    /// Layer of the context, `depth·width → context`.
    pub context: Linear,
    /// Layer of the path, `(roles - 1)·depth → path`. The path matrix is flattened by roles.
    pub path: Linear,
    /// Hidden layer of the policy, `width + context + path + view + position + examples → policy_hidden`.
    pub policy_hidden: Linear,
    /// Output layer of the policy, `policy_hidden → moves`.
    pub policy_output: Linear,
    /// Encoder of the value if it is a network of its own.
    pub value_encoder: Option<EncoderWeights>,
    /// Hidden layer of the value, `width + position + examples + view → value_hidden`.
    pub value_hidden: Linear,
    /// Output layer of the value, `value_hidden → 1`.
    pub value_output: Linear,
}

/// Weights of the layers that encode septs, grids and views.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderWeights {
    /// Embedding, `[values][width]`.
    pub embedding: Vec<f32>,
    /// Hidden layer of the roll-up, `roles·width → rollup`.
    pub rollup_hidden: Linear,
    /// Output layer of the roll-up, `rollup → width`.
    pub rollup_output: Linear,
    /// Convolutions 3×3 over the grids: `grids·symbols + flags → filters`, then `filters → filters`.
    pub grids: Vec<Conv>,
    /// Convolution 1×1 over the grids, `filters → reduced`.
    pub grids_reduce: Conv,
    /// Output layer of the grids, `reduced·64 → position`.
    pub grids_output: Linear,
    /// Convolution 3×3 over a view, `symbols → view_filters`.
    pub view: Conv,
    /// Convolution 1×1 over a view, `view_filters → view_reduced`.
    pub view_reduce: Conv,
    /// Output layer of a view, `view_reduced·64 → view`.
    pub view_output: Linear,
    /// Layers over an example, in networks that take them.
    pub examples: Option<ExampleWeights>,
}

/// Weights of the layers that encode an example.
#[derive(Clone, Debug, PartialEq)]
pub struct ExampleWeights {
    /// Convolutions 3×3 over both grids: `2·symbols → filters`, then `filters → filters`.
    pub convolutions: Vec<Conv>,
    /// Convolution 1×1, `filters → reduced`.
    pub reduce: Conv,
    /// Output layer, `reduced·64 → examples`.
    pub output: Linear,
}

/// Number of grids of an example.
pub(super) const EXAMPLE_GRIDS: usize = 2;

impl FishEyeShape {
    /// Returns the measured default with one encoder for policy and value, which has 568 thousand parameters.
    pub fn new(values: usize, roles: usize, depth: usize, moves: usize) -> Self {
        Self {
            values,
            roles,
            depth,
            moves,
            grids: 3,
            flags: 1,
            symbols: 11,
            width: 64,
            rollup: 128,
            context: 128,
            path: 64,
            filters: 64,
            convolutions: 3,
            reduced: 8,
            position: 128,
            examples: 0,
            view_filters: 16,
            view_reduced: 4,
            view: 64,
            policy_hidden: 256,
            value_hidden: 128,
            shared: true,
        }
    }

    /// Returns the default for rows of `layout`; `None` if a fish-eye network cannot take such rows.
    pub fn of(layout: &RowLayout) -> Option<Self> {
        let RowForm::Clan(rows) = &layout.form else {
            return None;
        };
        let [roles, depth, moves, symbols] =
            [rows.roles, rows.depth, rows.moves, rows.symbols].map(|number| number as usize);
        let shape = Self::new(EMBEDDING_ROWS, roles, depth, moves);
        Some(Self {
            symbols,
            examples: if rows.examples > 0 { shape.position } else { 0 },
            ..shape
        })
    }

    /// Changes the number of convolutions over the grids, and scales all sizes in proportion to `filters`. 64 keeps the
    /// sizes of the default.
    pub fn sized(self, convolutions: usize, filters: usize) -> Self {
        let part = |share: usize| (filters / share).max(1);
        Self {
            width: filters,
            rollup: 2 * filters,
            context: 2 * filters,
            path: filters,
            filters,
            convolutions,
            reduced: part(8),
            position: 2 * filters,
            examples: if self.examples > 0 { 2 * filters } else { 0 },
            view_filters: part(4),
            view_reduced: part(16),
            view: filters,
            policy_hidden: 4 * filters,
            value_hidden: 2 * filters,
            ..self
        }
    }

    /// Returns the number of planes of a position's grids.
    pub fn planes(&self) -> usize {
        self.grids * self.symbols + self.flags
    }

    /// Returns the size of the vector of what a position shows: its grids and its examples.
    pub fn shown(&self) -> usize {
        self.position + self.examples
    }

    /// Returns the number of inputs of the policy that belong to the imp alone: sept, context, path, view.
    pub fn own(&self) -> usize {
        self.width + self.context + self.path + self.view
    }

    /// Returns the prefixes of the names of the encoders: one, or that of the policy and that of the value.
    pub fn encoders(&self) -> &'static [&'static str] {
        if self.shared { &[""] } else { &["", VALUE_ENCODER] }
    }

    /// Returns all layers in order: name, outputs, inputs, side of the kernel (0 for a fully connected layer).
    pub fn layers(&self) -> Vec<(String, usize, usize, usize)> {
        let linear = |name: &str, outputs, inputs| (name.to_owned(), outputs, inputs, 0);
        let mut layers = self.encoder_layers("");
        // The order determines each layer's first weights, so new layers are added at the end.
        layers.splice(
            2..2,
            [
                linear("context", self.context, self.depth * self.width),
                linear("path", self.path, self.roles.saturating_sub(1) * self.depth),
            ],
        );
        layers.extend([
            linear("policy.hidden", self.policy_hidden, self.own() + self.shown()),
            linear("policy.output", self.moves, self.policy_hidden),
            linear(
                "value.hidden",
                self.value_hidden,
                self.width + self.shown() + self.view,
            ),
            linear("value.output", 1, self.value_hidden),
        ]);
        if !self.shared {
            layers.extend(self.encoder_layers(VALUE_ENCODER));
        }
        layers
    }

    /// Returns the layers of an encoder, whose names begin with `prefix`, in the form of [`FishEyeShape::layers`].
    fn encoder_layers(&self, prefix: &str) -> Vec<(String, usize, usize, usize)> {
        let layer =
            |name: String, outputs, inputs, kernel| (format!("{prefix}{name}"), outputs, inputs, kernel);
        let linear = |name: &str, outputs, inputs| layer(name.to_owned(), outputs, inputs, 0);
        let mut layers = vec![
            linear("rollup.hidden", self.rollup, self.roles * self.width),
            linear("rollup.output", self.width, self.rollup),
        ];
        for number in 0..self.convolutions {
            let inputs = if number == 0 { self.planes() } else { self.filters };
            layers.push(layer(format!("grids.conv{number}"), self.filters, inputs, 3));
        }
        layers.extend([
            layer("grids.reduce".into(), self.reduced, self.filters, 1),
            linear("grids.output", self.position, self.reduced * SQUARES),
            layer("view.conv".into(), self.view_filters, self.symbols, 3),
            layer("view.reduce".into(), self.view_reduced, self.view_filters, 1),
            linear("view.output", self.view, self.view_reduced * SQUARES),
        ]);
        if self.examples > 0 {
            for number in 0..self.convolutions {
                let planes = EXAMPLE_GRIDS * self.symbols;
                let inputs = if number == 0 { planes } else { self.filters };
                layers.push(layer(format!("examples.conv{number}"), self.filters, inputs, 3));
            }
            layers.push(layer("examples.reduce".into(), self.reduced, self.filters, 1));
            layers.push(layer(
                "examples.output".into(),
                self.examples,
                self.reduced * SQUARES,
                0,
            ));
        }
        layers
    }
}

impl FishEyeWeights {
    /// Returns the number of weights and biases.
    pub fn parameters(&self) -> usize {
        let linears = self
            .linears()
            .into_iter()
            .map(|(_, layer)| layer.weights.len() + layer.bias.len());
        let convs = self
            .convs()
            .into_iter()
            .map(|(_, layer)| layer.weights.len() + layer.bias.len());
        let embeddings = self.encoders().map(|(_, encoder)| encoder.embedding.len());
        embeddings.sum::<usize>() + linears.sum::<usize>() + convs.sum::<usize>()
    }

    /// Checks that every layer has the shape it must have, and that every number is finite.
    ///
    /// # Errors
    /// [`TowerError`] that names the first wrong layer.
    pub fn check(&self) -> Result<(), TowerError> {
        let shape = &self.shape;
        if shape.values == 0 || shape.roles < 2 || shape.depth == 0 || shape.convolutions == 0 {
            return Err(TowerError::Layout(format!(
                "no fish-eye network has {} values, {} roles, depth {} and {} convolutions",
                shape.values, shape.roles, shape.depth, shape.convolutions
            )));
        }
        if shape.shared == self.value_encoder.is_some() {
            return Err(TowerError::Layout(
                "two networks have two encoders, one network has one".into(),
            ));
        }
        let embedding = (shape.values, shape.width, 1);
        for (prefix, encoder) in self.encoders() {
            if encoder.examples.is_some() != (shape.examples > 0) {
                return Err(TowerError::Layout(format!(
                    "the size of the vector of examples is {}, which the layers {prefix}examples do not fit",
                    shape.examples
                )));
            }
            check_layer(
                &format!("{prefix}embedding"),
                &encoder.embedding,
                &vec![0.0; shape.values],
                embedding,
                embedding,
            )?;
        }
        let (linears, convs) = (self.linears(), self.convs());
        for (name, outputs, inputs, kernel) in shape.layers() {
            let found = if kernel == 0 {
                linears
                    .iter()
                    .find(|(linear, _)| *linear == name)
                    .map(|(_, layer)| (&layer.weights, &layer.bias, (layer.outputs, layer.inputs, 1)))
            } else {
                convs.iter().find(|(conv, _)| *conv == name).map(|(_, layer)| {
                    (
                        &layer.weights,
                        &layer.bias,
                        (layer.outputs, layer.inputs, layer.kernel),
                    )
                })
            };
            let Some((weights, bias, found)) = found else {
                return Err(TowerError::Layout(format!("the network has no layer {name}")));
            };
            check_layer(&name, weights, bias, found, (outputs, inputs, kernel.max(1)))?;
        }
        Ok(())
    }

    /// Returns the encoders with the prefixes of their layers' names.
    fn encoders(&self) -> impl Iterator<Item = (&'static str, &EncoderWeights)> {
        let of_value = self.value_encoder.as_ref();
        [("", &self.encoder)]
            .into_iter()
            .chain(of_value.map(|encoder| (VALUE_ENCODER, encoder)))
    }

    fn linears(&self) -> Vec<(String, &Linear)> {
        let heads = [
            ("context", &self.context),
            ("path", &self.path),
            ("policy.hidden", &self.policy_hidden),
            ("policy.output", &self.policy_output),
            ("value.hidden", &self.value_hidden),
            ("value.output", &self.value_output),
        ];
        let mut linears = heads.map(|(name, layer)| (name.to_owned(), layer)).to_vec();
        for (prefix, encoder) in self.encoders() {
            let layers = [
                ("rollup.hidden", &encoder.rollup_hidden),
                ("rollup.output", &encoder.rollup_output),
                ("grids.output", &encoder.grids_output),
                ("view.output", &encoder.view_output),
            ];
            let of_examples = encoder
                .examples
                .iter()
                .map(|examples| ("examples.output", &examples.output));
            let layers = layers.into_iter().chain(of_examples);
            linears.extend(layers.map(|(name, layer)| (format!("{prefix}{name}"), layer)));
        }
        linears
    }

    fn convs(&self) -> Vec<(String, &Conv)> {
        let mut convs = Vec::new();
        for (prefix, encoder) in self.encoders() {
            let grids = encoder.grids.iter().enumerate();
            convs.extend(grids.map(|(number, layer)| (format!("{prefix}grids.conv{number}"), layer)));
            let others = [
                ("grids.reduce", &encoder.grids_reduce),
                ("view.conv", &encoder.view),
                ("view.reduce", &encoder.view_reduce),
            ];
            convs.extend(others.map(|(name, layer)| (format!("{prefix}{name}"), layer)));
            if let Some(examples) = &encoder.examples {
                let layers = examples.convolutions.iter().enumerate();
                convs.extend(layers.map(|(number, layer)| (format!("{prefix}examples.conv{number}"), layer)));
                convs.push((format!("{prefix}examples.reduce"), &examples.reduce));
            }
        }
        convs
    }
}
