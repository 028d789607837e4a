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
}

/// Weights of a fish-eye network.
#[derive(Clone, Debug, PartialEq)]
pub struct FishEyeWeights {
    /// Sizes of the network.
    pub shape: FishEyeShape,
    /// Embedding, `[values][width]`.
    pub embedding: Vec<f32>,
    /// Hidden layer of the roll-up, `roles·width → rollup`.
    pub rollup_hidden: Linear,
    /// Output layer of the roll-up, `rollup → width`.
    pub rollup_output: Linear,
    /// Layer of the context, `depth·width → context`.
    pub context: Linear,
    /// Layer of the path, `(roles - 1)·depth → path`. The path matrix is flattened by roles.
    pub path: Linear,
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
    /// Hidden layer of the policy, `width + context + path + view + position → policy_hidden`.
    pub policy_hidden: Linear,
    /// Output layer of the policy, `policy_hidden → moves`.
    pub policy_output: Linear,
    /// Hidden layer of the value, `width + position + view → value_hidden`.
    pub value_hidden: Linear,
    /// Output layer of the value, `value_hidden → 1`.
    pub value_output: Linear,
}

impl FishEyeShape {
    /// Returns the measured default, which has 568 thousand parameters.
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
            view_filters: 16,
            view_reduced: 4,
            view: 64,
            policy_hidden: 256,
            value_hidden: 128,
        }
    }

    /// Returns the default for rows of `layout`; `None` if a fish-eye network cannot take such rows.
    pub fn of(layout: &RowLayout) -> Option<Self> {
        let RowForm::Clan(rows) = &layout.form else {
            return None;
        };
        let [roles, depth, moves, symbols] =
            [rows.roles, rows.depth, rows.moves, rows.symbols].map(|number| number as usize);
        Some(Self {
            symbols,
            ..Self::new(EMBEDDING_ROWS, roles, depth, moves)
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
            view_filters: part(4),
            view_reduced: part(16),
            view: filters,
            policy_hidden: 4 * filters,
            value_hidden: 2 * filters,
            ..self
        }
    }

    /// Number of planes of a position's grids.
    pub fn planes(&self) -> usize {
        self.grids * self.symbols + self.flags
    }

    /// Number of inputs of the policy that belong to the imp alone: sept, context, path, view.
    pub fn own(&self) -> usize {
        self.width + self.context + self.path + self.view
    }

    /// All layers in order: name, outputs, inputs, side of the kernel (0 for a fully connected layer).
    pub fn layers(&self) -> Vec<(String, usize, usize, usize)> {
        let linear = |name: &str, outputs, inputs| (name.to_owned(), outputs, inputs, 0);
        let conv = |name: String, outputs, inputs, kernel| (name, outputs, inputs, kernel);
        let mut layers = vec![
            linear("rollup.hidden", self.rollup, self.roles * self.width),
            linear("rollup.output", self.width, self.rollup),
            linear("context", self.context, self.depth * self.width),
            linear("path", self.path, self.roles.saturating_sub(1) * self.depth),
        ];
        for number in 0..self.convolutions {
            let inputs = if number == 0 { self.planes() } else { self.filters };
            layers.push(conv(format!("grids.conv{number}"), self.filters, inputs, 3));
        }
        layers.extend([
            conv("grids.reduce".into(), self.reduced, self.filters, 1),
            linear("grids.output", self.position, self.reduced * SQUARES),
            conv("view.conv".into(), self.view_filters, self.symbols, 3),
            conv("view.reduce".into(), self.view_reduced, self.view_filters, 1),
            linear("view.output", self.view, self.view_reduced * SQUARES),
            linear("policy.hidden", self.policy_hidden, self.own() + self.position),
            linear("policy.output", self.moves, self.policy_hidden),
            linear(
                "value.hidden",
                self.value_hidden,
                self.width + self.position + self.view,
            ),
            linear("value.output", 1, self.value_hidden),
        ]);
        layers
    }
}

impl FishEyeWeights {
    /// Number of weights and biases.
    pub fn parameters(&self) -> usize {
        let linears = self
            .linears()
            .into_iter()
            .map(|(_, layer)| layer.weights.len() + layer.bias.len());
        let convs = self
            .convs()
            .into_iter()
            .map(|(_, layer)| layer.weights.len() + layer.bias.len());
        self.embedding.len() + linears.sum::<usize>() + convs.sum::<usize>()
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
        let embedding = (shape.values, shape.width, 1);
        check_layer(
            "embedding",
            &self.embedding,
            &vec![0.0; shape.values],
            embedding,
            embedding,
        )?;
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

    fn linears(&self) -> Vec<(String, &Linear)> {
        [
            ("rollup.hidden", &self.rollup_hidden),
            ("rollup.output", &self.rollup_output),
            ("context", &self.context),
            ("path", &self.path),
            ("grids.output", &self.grids_output),
            ("view.output", &self.view_output),
            ("policy.hidden", &self.policy_hidden),
            ("policy.output", &self.policy_output),
            ("value.hidden", &self.value_hidden),
            ("value.output", &self.value_output),
        ]
        .map(|(name, layer)| (name.to_owned(), layer))
        .into()
    }

    fn convs(&self) -> Vec<(String, &Conv)> {
        let grids = self.grids.iter().enumerate();
        grids
            .map(|(number, layer)| (format!("grids.conv{number}"), layer))
            .chain([
                ("grids.reduce".into(), &self.grids_reduce),
                ("view.conv".into(), &self.view),
                ("view.reduce".into(), &self.view_reduce),
            ])
            .collect()
    }
}
