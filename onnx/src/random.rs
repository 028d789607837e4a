//! Networks with random weights. They are as fast as trained ones, and serve to compare implementations.

use games::{
    Game as _, RowForm, RowLayout, Symmetry,
    generator::{Encoding, GeneratorGame, Problem, Rules},
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    file::OnnxError,
    fish_eye::{self, FishEyeShape, FishEyeWeights},
    model::{self, Input, Metadata},
    network::{TowerLayer, TowerShape, TowerWeights},
    weights::{Kind, Layer, LayerShape, Weights},
};

/// Writes the file of a network with random weights for rows of any layout: a tower of `blocks` × `filters`, or a fish-eye
/// network of `blocks` convolutions with `filters` channels. The same seed gives the same file.
///
/// # Errors
/// [`OnnxError`] if the layout and the sizes do not make a network.
pub fn model(metadata: &Metadata, blocks: usize, filters: usize, seed: u64) -> Result<Vec<u8>, OnnxError> {
    let layout = &metadata.layout;
    match FishEyeShape::of(layout) {
        None => {
            let shape = TowerShape::new(layout, blocks, filters);
            let weights = TowerWeights::random(&shape, seed);
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
    pub fn random(shape: &TowerShape, seed: u64) -> Self {
        let calm = 1.0 / (shape.blocks.max(1) as f32).sqrt();
        let parts = shape.layers().iter().flat_map(TowerLayer::parts).collect();
        Self::drawn(*shape, parts, seed, |name| match name {
            // A row fills few of the planes, so the gain is higher.
            "input" => 3.0,
            "value.output" => 0.5,
            name if name.ends_with(".second") => calm,
            name if name.ends_with(".pooled.linear") => 0.5,
            _ => 1.0,
        })
    }
}

impl FishEyeWeights {
    /// Draws random weights; the same seed gives the same weights. Activations neither vanish nor explode.
    pub fn random(shape: &FishEyeShape, seed: u64) -> Self {
        Self::drawn(shape.clone(), shape.layers(), seed, |name| match name {
            // Only one number of each column is 1, so the gain is higher.
            "path" => 4.0,
            "value.output" => 0.5,
            name if name.ends_with("rollup.output") => 0.7,
            name if name.ends_with(".conv0") || name.ends_with("view.conv") => 3.0,
            _ => 1.0,
        })
    }
}

impl<S> Weights<S> {
    /// Draws the weights of layers: uniform numbers with He's standard deviation √(2 / fan-in), times the gain of the layer of this
    /// name, biases in [-0.1, 0.1), and numbers of tables in [-1, 1).
    fn drawn(shape: S, parts: Vec<LayerShape>, seed: u64, gain: impl Fn(&str) -> f32) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut uniform = |count: usize, bound: f32| -> Vec<f32> {
            (0..count)
                .map(|_| random.random_range(-1.0_f32..1.0) * bound)
                .collect()
        };
        let layers = parts.into_iter().map(|part| {
            let bound = match part.kind {
                Kind::Table => 1.0,
                _ => gain(&part.name) * (6.0 / part.taps().max(1) as f32).sqrt(),
            };
            Layer {
                weights: uniform(part.outputs * part.taps(), bound),
                bias: uniform(part.biases(), 0.1),
                shape: part,
            }
        });
        Self {
            layers: layers.collect(),
            shape,
        }
    }
}

/// Draws rows of a layout. Rows of planes have random indices into the sparse planes, and constants within their bounds. Other
/// rows are positions on the way to solutions of random problems.
///
/// `filled` in (0, 1] is the share of entries that do not repeat the first one.
pub fn rows(layout: &RowLayout, count: usize, filled: f32, seed: u64) -> Vec<u32> {
    let Ok(stack) = layout.stack() else {
        return clan_rows(layout, count, seed);
    };
    let squares = stack.squares() as u32;
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
            let index = plane * squares + random.random_range(0..squares.max(1));
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

/// Depth of the deepest problems that rows are drawn from, in moves.
const DEEPEST: u32 = 24;

/// Draws rows of the generator game: problems of all depths, each some way towards its solution. If the rows hold examples, half of them
/// have some.
fn clan_rows(layout: &RowLayout, count: usize, seed: u64) -> Vec<u32> {
    let has_examples = matches!(&layout.form, RowForm::Clan(rows) if rows.examples > 0);
    let (encoding, tasks) = if has_examples {
        (Encoding::Examples, 50)
    } else {
        (Encoding::Plain, 0)
    };
    let rules = Rules {
        tasks,
        ..Rules::default()
    };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = Vec::new();
    for number in 0..count {
        let depth = 1 + 7 * number as u32 % DEEPEST;
        let mut draw = |below: usize| random.random_range(0..below.max(1));
        let drawn = GeneratorGame::draw_start(&rules, depth, &mut draw);
        let (mut state, solution) = match drawn {
            Some(drawn) => (drawn.start, drawn.solution),
            // No problem of this depth was found.
            None => (GeneratorGame::posed(&rules, Problem::Free), Vec::new()),
        };
        let steps = random.random_range(solution.len() / 2..=solution.len());
        // The last action would end the game.
        let steps = steps.min(solution.len().saturating_sub(1));
        for &action in solution.iter().take(steps) {
            state.play_legal(action);
        }
        state.write_row(encoding, Symmetry::IDENTITY, &mut rows);
    }
    rows
}
