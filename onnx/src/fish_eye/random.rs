//! Fish-eye networks with random weights.

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::{FishEyeShape, FishEyeWeights};
use crate::random::Draw;

impl FishEyeWeights {
    /// Draws random weights; the same seed gives the same weights. Activations neither vanish nor explode.
    pub fn random(shape: &FishEyeShape, seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let squares = games::layout::SQUARES;
        Self {
            shape: shape.clone(),
            embedding: draw.uniform(shape.values * shape.width, 1.0),
            rollup_hidden: draw.linear(shape.rollup, shape.roles * shape.width, 1.0),
            rollup_output: draw.linear(shape.width, shape.rollup, 0.7),
            context: draw.linear(shape.context, shape.depth * shape.width, 1.0),
            // Only one number of each column is 1, so the gain is higher.
            path: draw.linear(shape.path, (shape.roles - 1) * shape.depth, 4.0),
            grids: (0..shape.convolutions)
                .map(|number| match number {
                    0 => draw.conv(shape.filters, shape.planes(), 3, 3.0),
                    _ => draw.conv(shape.filters, shape.filters, 3, 1.0),
                })
                .collect(),
            grids_reduce: draw.conv(shape.reduced, shape.filters, 1, 1.0),
            grids_output: draw.linear(shape.position, shape.reduced * squares, 1.0),
            view: draw.conv(shape.view_filters, shape.symbols, 3, 3.0),
            view_reduce: draw.conv(shape.view_reduced, shape.view_filters, 1, 1.0),
            view_output: draw.linear(shape.view, shape.view_reduced * squares, 1.0),
            policy_hidden: draw.linear(shape.policy_hidden, shape.own() + shape.position, 1.0),
            policy_output: draw.linear(shape.moves, shape.policy_hidden, 1.0),
            value_hidden: draw.linear(shape.value_hidden, shape.width + shape.position + shape.view, 1.0),
            value_output: draw.linear(1, shape.value_hidden, 0.5),
        }
    }
}
