//! Random rows of the generator game.

use games::{
    Game as _, RowForm, RowLayout, Symmetry,
    generator::{Encoding, GeneratorGame, Problem, Rules},
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Depth of the deepest problems that rows are drawn from, in moves.
const DEEPEST: u32 = 24;

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
