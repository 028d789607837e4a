//! Sizes and weights of a fish-eye network, as plain vectors.

use games::{
    RowForm, RowLayout,
    generator::{expansion::EMBEDDING_ROWS, grid::CELLS},
};
use serde::{Deserialize, Serialize};

use crate::{
    file::OnnxError,
    weights::{Kind, LayerShape, Weights},
};

/// Sizes of a fish-eye network, which determine the shapes of its weights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Weights of a fish-eye network. The layers of the value's own encoder have names that begin with [`VALUE_ENCODER`].
///
/// | layer | from | to |
/// |---|---|---|
/// | `embedding` (a table) | | `values` rows of `width` |
/// | `rollup.hidden`, `rollup.output` | role matrix, `roles·width` | `rollup`, then a sept, `width` |
/// | `context` | context matrix, `depth·width` | `context` |
/// | `path` | path matrix, flattened by roles, `(roles - 1)·depth` | `path` |
/// | `grids.conv0`, …, `grids.reduce`, `grids.output` | `grids·symbols + flags` planes | `filters`, …, `reduced`, then `position` |
/// | `view.conv`, `view.reduce`, `view.output` | `symbols` planes | `view_filters`, `view_reduced`, then `view` |
/// | `examples.conv0`, …, `examples.reduce`, `examples.output` | both grids, `2·symbols` planes | `filters`, …, `reduced`, then `examples` |
/// | `policy.hidden`, `policy.output` | sept, context, path, view, position, examples | `policy_hidden`, then `moves` |
/// | `value.hidden`, `value.output` | sept, position, examples, view | `value_hidden`, then 1 |
pub type FishEyeWeights = Weights<FishEyeShape>;

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
            shared: true,
            ..Self::default()
        }
        .sized(3, 64)
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

    /// Changes the number of convolutions over the grids, and scales all sizes in proportion to `filters`.
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

    /// Returns all layers in order: the tables, then all others. The order determines the first weights of a new network.
    pub fn layers(&self) -> Vec<LayerShape> {
        let linear = |name: &str, outputs, inputs| LayerShape::new(name, Kind::Linear, outputs, inputs);
        let tables = self.encoders().iter().map(|prefix| {
            LayerShape::new(format!("{prefix}embedding"), Kind::Table, self.values, self.width)
        });
        let mut encoder = self.encoder_layers("").into_iter();
        let mut layers: Vec<LayerShape> = tables.chain(encoder.by_ref().take(2)).collect();
        layers.extend([
            linear("context", self.context, self.depth * self.width),
            linear("path", self.path, self.roles.saturating_sub(1) * self.depth),
        ]);
        layers.extend(encoder);
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

    /// Returns the layers of an encoder but its table. Their names begin with `prefix`.
    fn encoder_layers(&self, prefix: &str) -> Vec<LayerShape> {
        let layer = |name: &str, kind, outputs, inputs| {
            LayerShape::new(format!("{prefix}{name}"), kind, outputs, inputs)
        };
        let board = |part: &str, convolutions: &[usize], planes, reduced, numbers| {
            let mut layers = Vec::new();
            let mut inputs = planes;
            for (number, &filters) in convolutions.iter().enumerate() {
                let name = match part {
                    "view" => "view.conv".to_owned(),
                    part => format!("{part}.conv{number}"),
                };
                layers.push(layer(&name, Kind::Conv(3), filters, inputs));
                inputs = filters;
            }
            layers.push(layer(&format!("{part}.reduce"), Kind::Conv(1), reduced, inputs));
            let name = format!("{part}.output");
            layers.push(layer(&name, Kind::Linear, numbers, reduced * CELLS));
            layers
        };
        let convolutions = vec![self.filters; self.convolutions];
        let mut layers = vec![
            layer(
                "rollup.hidden",
                Kind::Linear,
                self.rollup,
                self.roles * self.width,
            ),
            layer("rollup.output", Kind::Linear, self.width, self.rollup),
        ];
        layers.extend(board(
            "grids",
            &convolutions,
            self.planes(),
            self.reduced,
            self.position,
        ));
        let of_view = [self.view_filters];
        layers.extend(board(
            "view",
            &of_view,
            self.symbols,
            self.view_reduced,
            self.view,
        ));
        if self.examples > 0 {
            let planes = EXAMPLE_GRIDS * self.symbols;
            layers.extend(board(
                "examples",
                &convolutions,
                planes,
                self.reduced,
                self.examples,
            ));
        }
        layers
    }
}

impl FishEyeWeights {
    /// Checks that every layer has the sizes of the shape, and that every number is finite.
    ///
    /// # Errors
    /// [`OnnxError`] that names the first wrong layer.
    pub fn check(&self) -> Result<(), OnnxError> {
        let shape = &self.shape;
        if shape.values == 0 || shape.roles < 2 || shape.depth == 0 || shape.convolutions == 0 {
            return Err(OnnxError::new(format!(
                "no fish-eye network has {} values, {} roles, depth {} and {} convolutions",
                shape.values, shape.roles, shape.depth, shape.convolutions
            )));
        }
        self.check_layers(&shape.layers())
    }
}
