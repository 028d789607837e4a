//! A fish-eye network's sizes and weights, as plain vectors.

use games::layout::SQUARES;
use serde::{Deserialize, Serialize};

use crate::weights::{Conv, Linear, TowerError, check_layer};

/// Everything that determines which weights a fish-eye network has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FishEyeShape {
    /// Rows of the embedding: one-hot values, with room to spare.
    pub values: usize,
    /// Rows of a role matrix: `this`, the roles, and a last one that no imp has ("the trail has ended").
    pub roles: usize,
    /// Deepest nesting: edges from the root to the deepest imp.
    pub depth: usize,
    /// Logits of an imp.
    pub moves: usize,
    /// Grids of a position.
    pub grids: usize,
    /// Flags of a position.
    pub flags: usize,
    /// Symbols of a square.
    pub symbols: usize,
    /// Numbers of a sept's value.
    pub width: usize,
    /// Hidden layer of the roll-up.
    pub rollup: usize,
    /// Numbers of a context.
    pub context: usize,
    /// Numbers of a path.
    pub path: usize,
    /// Channels of the convolutions over a position's grids.
    pub filters: usize,
    /// Convolutions over a position's grids.
    pub convolutions: usize,
    /// Channels before the linear layer over a position's grids.
    pub reduced: usize,
    /// Numbers of a position's grids.
    pub position: usize,
    /// Channels of the convolution over a view.
    pub view_filters: usize,
    /// Channels before the linear layer over a view.
    pub view_reduced: usize,
    /// Numbers of a view.
    pub view: usize,
    /// Hidden layer of the policy.
    pub policy_hidden: usize,
    /// Hidden layer of the value.
    pub value_hidden: usize,
}

/// The weights.
#[derive(Clone, Debug, PartialEq)]
pub struct FishEyeWeights {
    /// The sizes.
    pub shape: FishEyeShape,
    /// `[values][width]`
    pub embedding: Vec<f32>,
    /// `roles·width → rollup`
    pub rollup_hidden: Linear,
    /// `rollup → width`
    pub rollup_output: Linear,
    /// `depth·width → context`
    pub context: Linear,
    /// `(roles - 1)·depth → path`, the path matrix flattened by roles.
    pub path: Linear,
    /// 3×3, `grids·symbols + flags → filters`, then `filters → filters`.
    pub grids: Vec<Conv>,
    /// 1×1, `filters → reduced`
    pub grids_reduce: Conv,
    /// `reduced·64 → position`
    pub grids_output: Linear,
    /// 3×3, `symbols → view_filters`
    pub view: Conv,
    /// 1×1, `view_filters → view_reduced`
    pub view_reduce: Conv,
    /// `view_reduced·64 → view`
    pub view_output: Linear,
    /// `width + context + path + view + position → policy_hidden`
    pub policy_hidden: Linear,
    /// `policy_hidden → moves`
    pub policy_output: Linear,
    /// `width + position + view → value_hidden`
    pub value_hidden: Linear,
    /// `value_hidden → 1`
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

    /// Changes the number of convolutions over the grids, and scales every width in proportion to `filters`; 64 gives the
    /// default's widths.
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

    /// Planes of a position's grids.
    pub fn planes(&self) -> usize {
        self.grids * self.symbols + self.flags
    }

    /// Inputs of the policy that belong to the imp alone: sept, context, path, view.
    pub fn own(&self) -> usize {
        self.width + self.context + self.path + self.view
    }

    /// Every layer in order: name, outputs, inputs, side of the kernel (0 for a fully connected layer).
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
    /// [`TowerError`] naming the first layer that is not right.
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
