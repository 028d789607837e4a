//! Networks with random weights. They are as fast as trained ones, and serve to compare implementations.

use games::{RowLayout, planes::SQUARES};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    draw::Draw,
    fish_eye::{self, FishEyeShape, FishEyeWeights},
    model::{self, Input, Metadata},
    weights::{Block, PolicyHead, TowerError, TowerWeights, ValueHead, pooled_blocks},
};

/// Sizes of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TowerShape {
    /// Number of residual blocks.
    pub blocks: usize,
    /// Number of channels of the tower.
    pub filters: usize,
    /// Number of channels that are pooled over the board, in [`pooled_blocks`] and in a policy of planes; 0: none.
    pub pooling: usize,
    /// Number of channels of the dense policy head; 0: the policy is planes (the actions must be a multiple of 64).
    pub policy_channels: usize,
    /// Number of channels of the value head.
    pub value_channels: usize,
    /// Width of the value head's hidden layer.
    pub value_hidden: usize,
    /// True if the value head has three outcomes: win, draw and loss.
    pub outcomes: bool,
}

impl TowerShape {
    /// Returns the sizes of a tower of `blocks` × `filters` with the heads that fit `layout`.
    pub fn new(layout: &RowLayout, blocks: usize, filters: usize) -> Self {
        let is_planes = (layout.actions as usize).is_multiple_of(SQUARES);
        Self {
            blocks,
            filters,
            pooling: 0,
            policy_channels: if is_planes { 0 } else { 32 },
            value_channels: 8,
            value_hidden: 64,
            outcomes: false,
        }
    }
}

/// Writes the file of a network with random weights for rows of any layout: a tower of `blocks` × `filters`, or a fish-eye
/// network of `blocks` convolutions with `filters` channels. The same seed gives the same file.
///
/// # Errors
/// [`TowerError`] if the layout and the sizes do not make a network.
pub fn model(metadata: &Metadata, blocks: usize, filters: usize, seed: u64) -> Result<Vec<u8>, TowerError> {
    let layout = &metadata.layout;
    match FishEyeShape::of(layout) {
        None => {
            let shape = TowerShape::new(layout, blocks, filters);
            let weights = TowerWeights::random(layout, &shape, seed);
            model::build(&weights, metadata, Input::Rows)
        }
        Some(shape) => {
            let weights = FishEyeWeights::random(&shape.sized(blocks, filters), seed);
            fish_eye::build(&weights, metadata)
        }
    }
}

impl TowerWeights {
    /// Draws random weights; the same seed gives the same weights. Activations neither vanish nor explode (He's
    /// initialisation, the blocks scaled down by their number), so the outputs differ from row to row.
    pub fn random(layout: &RowLayout, shape: &TowerShape, seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let filters = shape.filters;
        let calm = 1.0 / (shape.blocks.max(1) as f32).sqrt();
        let actions = layout.actions as usize;
        let planes = layout.stack().map_or(0, |stack| stack.planes as usize);
        let pooled = |number| match pooled_blocks(shape.blocks).contains(&number) {
            true => shape.pooling,
            false => 0,
        };
        Self {
            // A row fills few of the planes, so the gain is higher.
            input: draw.conv(filters, planes, 3, 3.0),
            blocks: (0..shape.blocks)
                .map(|number| Block {
                    first: draw.conv(filters.saturating_sub(pooled(number)), filters, 3, 1.0),
                    pooling: draw.pooling(filters, pooled(number)),
                    second: draw.conv(filters, filters.saturating_sub(pooled(number)), 3, calm),
                })
                .collect(),
            policy: if shape.policy_channels == 0 {
                let kept = filters.saturating_sub(shape.pooling);
                PolicyHead::Planes {
                    conv: draw.conv(kept, filters, 3, 1.0),
                    pooling: draw.pooling(filters, shape.pooling),
                    planes: draw.conv(actions / SQUARES, kept, 3, 1.0),
                }
            } else {
                PolicyHead::Dense {
                    conv: draw.conv(shape.policy_channels, filters, 1, 1.0),
                    linear: draw.linear(actions, shape.policy_channels * SQUARES, 1.0),
                }
            },
            value: ValueHead {
                conv: draw.conv(shape.value_channels, filters, 1, 1.0),
                hidden: draw.linear(shape.value_hidden, shape.value_channels * SQUARES, 1.0),
                output: draw.linear(if shape.outcomes { 3 } else { 1 }, shape.value_hidden, 0.5),
            },
        }
    }
}

/// Draws rows of a layout. Rows of planes have random indices into the sparse planes, and constants within their bounds. Other
/// rows are positions on the way to solutions of random problems.
///
/// `filled` in (0, 1] is the share of entries that do not repeat the first one.
pub fn rows(layout: &RowLayout, count: usize, filled: f32, seed: u64) -> Vec<u32> {
    let Ok(stack) = layout.stack() else {
        return fish_eye::random::rows(layout, count, seed);
    };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = Vec::with_capacity(count * stack.row_len());
    for _ in 0..count {
        let mut first = None;
        for _ in 0..stack.entries {
            let plane = stack
                .sparse
                .get(random.random_range(0..stack.sparse.len().max(1)))
                .copied()
                .unwrap_or_default();
            let index = plane * SQUARES as u32 + random.random_range(0..SQUARES as u32);
            let first = *first.get_or_insert(index);
            rows.push(if random.random::<f32>() < filled {
                index
            } else {
                first
            });
        }
        rows.extend(
            stack
                .constants
                .iter()
                .map(|constant| random.random_range(0..=constant.max)),
        );
    }
    rows
}
