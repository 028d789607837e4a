//! Networks with random weights. They are as fast as trained ones, and serve to compare implementations.

use games::{
    Game as _, RowForm, RowLayout, Symmetry,
    generator::{GeneratorGame, Problem, Rules, expansion::EMBEDDING_ROWS},
    layout::SQUARES,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    fish_eye::{self, FishEyeShape, FishEyeWeights},
    model::{self, Input, Metadata},
    weights::{
        Block, Conv, GlobalPooling, Linear, PolicyHead, SqueezeExcitation, TowerError, TowerWeights,
        ValueHead, pooled_blocks,
    },
};

/// Greatest depth, in moves, of the problems from which rows of clans are drawn.
const DEEPEST: u32 = 24;

/// Sizes of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TowerShape {
    /// Number of residual blocks.
    pub blocks: usize,
    /// Number of channels of the tower.
    pub filters: usize,
    /// Number of channels of each block's squeeze; 0: no squeeze-excitation.
    pub squeeze: usize,
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
    /// Sizes of a tower of `blocks` × `filters` with the heads that fit `layout`.
    pub fn new(layout: &RowLayout, blocks: usize, filters: usize) -> Self {
        let is_planes = (layout.actions as usize).is_multiple_of(SQUARES);
        Self {
            blocks,
            filters,
            squeeze: 0,
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
    match &layout.form {
        RowForm::Planes(_) => {
            let shape = TowerShape::new(layout, blocks, filters);
            let weights = TowerWeights::random(layout, &shape, seed);
            model::build(&weights, metadata, Input::Rows)
        }
        RowForm::Clan(rows) => {
            let [roles, depth, moves] = [rows.roles, rows.depth, rows.moves].map(|number| number as usize);
            let shape = FishEyeShape::new(EMBEDDING_ROWS, roles, depth, moves).sized(blocks, filters);
            fish_eye::build(&FishEyeWeights::random(&shape, seed), metadata)
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
                    gate: (shape.squeeze > 0).then(|| SqueezeExcitation {
                        squeeze: draw.linear(shape.squeeze, filters, 1.0),
                        excite: draw.linear(filters, shape.squeeze, 1.0),
                    }),
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

pub(crate) struct Draw(pub(crate) ChaCha8Rng);

impl Draw {
    pub(crate) fn conv(&mut self, outputs: usize, inputs: usize, kernel: usize, gain: f32) -> Conv {
        let taps = inputs * kernel * kernel;
        Conv {
            outputs,
            inputs,
            kernel,
            weights: self.weights(outputs * taps, taps, gain),
            bias: self.uniform(outputs, 0.1),
        }
    }

    /// Draws the global pooling beside a 3×3 convolution, both of `filters` channels together.
    fn pooling(&mut self, filters: usize, channels: usize) -> Option<GlobalPooling> {
        (channels > 0).then(|| GlobalPooling {
            conv: self.conv(channels, filters, 3, 1.0),
            linear: self.linear(filters.saturating_sub(channels), 2 * channels, 0.5),
        })
    }

    pub(crate) fn linear(&mut self, outputs: usize, inputs: usize, gain: f32) -> Linear {
        Linear {
            outputs,
            inputs,
            weights: self.weights(outputs * inputs, inputs, gain),
            bias: self.uniform(outputs, 0.1),
        }
    }

    /// Draws uniform weights with He's standard deviation √(2 / fan-in), times `gain`.
    fn weights(&mut self, count: usize, fan_in: usize, gain: f32) -> Vec<f32> {
        let bound = gain * (6.0 / fan_in.max(1) as f32).sqrt();
        self.uniform(count, bound)
    }

    pub(crate) fn uniform(&mut self, count: usize, bound: f32) -> Vec<f32> {
        (0..count)
            .map(|_| self.0.random_range(-1.0_f32..1.0) * bound)
            .collect()
    }
}

/// Draws rows of a layout: indices into the sparse planes, constants within their bounds. Rows of clans are positions on
/// the way to solutions of drawn problems.
///
/// `filled` in (0, 1] is the share of entries that do not repeat the first one.
pub fn rows(layout: &RowLayout, count: usize, filled: f32, seed: u64) -> Vec<u32> {
    let Ok(stack) = layout.stack() else {
        return clans(count, seed);
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

/// Draws rows of the generator game: positions on the way to the solutions of problems of all depths.
fn clans(count: usize, seed: u64) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = Vec::new();
    for number in 0..count {
        let depth = 1 + 7 * number as u32 % DEEPEST;
        let mut draw = |below: usize| random.random_range(0..below.max(1));
        let drawn = GeneratorGame::draw_start(&Rules::default(), depth, &mut draw);
        let (mut state, solution) = match drawn {
            Some(drawn) => (drawn.start, drawn.solution),
            // If no problem of this depth was found, the start position without a problem is used.
            None => (GeneratorGame::posed(&Rules::default(), Problem::Free), Vec::new()),
        };
        let steps = random.random_range(solution.len() / 2..=solution.len());
        // The last action would end the game.
        let steps = steps.min(solution.len().saturating_sub(1));
        for &action in solution.iter().take(steps) {
            state.play_legal(action);
        }
        state.write_row((), Symmetry::IDENTITY, &mut rows);
    }
    rows
}
