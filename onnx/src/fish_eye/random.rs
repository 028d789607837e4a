//! Fish-eye networks with random weights, and random rows for them.

use games::{
    Game as _, RowForm, RowLayout, Symmetry,
    generator::{Encoding, GeneratorGame, Problem, Rules},
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{EncoderWeights, ExampleWeights, FishEyeShape, FishEyeWeights, weights::EXAMPLE_GRIDS};
use crate::draw::Draw;

/// Depth of the deepest problems that rows are drawn from, in moves.
const DEEPEST: u32 = 24;

impl FishEyeWeights {
    /// Draws random weights; the same seed gives the same weights. Activations neither vanish nor explode.
    pub fn random(shape: &FishEyeShape, seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        Self {
            shape: shape.clone(),
            encoder: encoder(&mut draw, shape),
            context: draw.linear(shape.context, shape.depth * shape.width, 1.0),
            // Only one number of each column is 1, so the gain is higher.
            path: draw.linear(shape.path, (shape.roles - 1) * shape.depth, 4.0),
            policy_hidden: draw.linear(shape.policy_hidden, shape.own() + shape.shown(), 1.0),
            policy_output: draw.linear(shape.moves, shape.policy_hidden, 1.0),
            value_encoder: (!shape.shared).then(|| encoder(&mut draw, shape)),
            value_hidden: draw.linear(shape.value_hidden, shape.width + shape.shown() + shape.view, 1.0),
            value_output: draw.linear(1, shape.value_hidden, 0.5),
        }
    }
}

fn encoder(draw: &mut Draw, shape: &FishEyeShape) -> EncoderWeights {
    let squares = games::planes::SQUARES;
    EncoderWeights {
        embedding: draw.uniform(shape.values * shape.width, 1.0),
        rollup_hidden: draw.linear(shape.rollup, shape.roles * shape.width, 1.0),
        rollup_output: draw.linear(shape.width, shape.rollup, 0.7),
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
        examples: (shape.examples > 0).then(|| ExampleWeights {
            convolutions: (0..shape.convolutions)
                .map(|number| match number {
                    0 => draw.conv(shape.filters, EXAMPLE_GRIDS * shape.symbols, 3, 3.0),
                    _ => draw.conv(shape.filters, shape.filters, 3, 1.0),
                })
                .collect(),
            reduce: draw.conv(shape.reduced, shape.filters, 1, 1.0),
            output: draw.linear(shape.examples, shape.reduced * squares, 1.0),
        }),
    }
}

/// Draws rows of the generator game: problems of all depths, each some way towards its solution. If the rows hold examples, half of them
/// have some.
pub(crate) fn rows(layout: &RowLayout, count: usize, seed: u64) -> Vec<u32> {
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
