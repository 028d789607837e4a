//! Requests over positions of random games.

use games::{
    RowLayout, Symmetry,
    erased::{AnyGame, AnyState, Variant},
    registry,
};
use proto::v1::EvaluateRequest;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Number of positions that are played.
const POSITIONS: usize = 4096;
/// Highest level of the problems.
const HARDEST: u32 = 16;
/// Positions in all batches of a baseline together, if they are small.
const BATCHED: usize = 512;

/// Positions of random games.
pub struct Positions {
    /// Layout of their rows.
    pub layout: RowLayout,
    rows: Vec<Vec<u32>>,
    legal: Vec<Vec<u32>>,
}

/// Returns the start position, or a problem of a random level up to [`HARDEST`] if the game consists of problems.
fn start(
    game: &AnyGame,
    variant: &dyn Variant,
    random: &mut ChaCha8Rng,
) -> anyhow::Result<Box<dyn AnyState>> {
    let usual = variant.start(None)?;
    if game.levels == 0 {
        return Ok(usual);
    }
    let level = random.random_range(1..=game.levels.min(HARDEST));
    let drawn = variant.draw_start(level, false, &mut |below| random.random_range(0..below.max(1)));
    Ok(drawn.map_or(usual, |drawn| drawn.start))
}

impl Positions {
    /// Plays `game` at random.
    pub fn play(game: &str) -> anyhow::Result<Self> {
        let game = registry::find(game)?;
        let variant = game.variant(&game.rules(), None)?;
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut played = Self {
            layout: variant.layout(),
            rows: Vec::new(),
            legal: Vec::new(),
        };
        let mut state = start(game, variant.as_ref(), &mut random)?;
        let mut actions = Vec::new();
        while played.rows.len() < POSITIONS {
            state.legal_actions(&mut actions);
            if state.outcome().is_some() || actions.is_empty() {
                state = start(game, variant.as_ref(), &mut random)?;
                continue;
            }
            let mut row = Vec::new();
            state.write_row(Symmetry::IDENTITY, &mut row);
            played.rows.push(row);
            let indices = actions
                .iter()
                .map(|&action| state.policy_index(Symmetry::IDENTITY, action));
            played.legal.push(indices.collect());
            let chosen = actions[random.random_range(0..actions.len())];
            state.play_legal(chosen);
        }
        Ok(played)
    }

    /// Returns the rows of batches of `size` positions, at least eight.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = Vec<u32>> {
        let count = (BATCHED / size).max(8);
        (0..count).map(move |number| self.request(number, size).indices)
    }

    /// Returns a request of `count` positions, which `number` selects (modulo the number of positions).
    pub fn request(&self, number: usize, count: usize) -> EvaluateRequest {
        let first = number * count;
        let numbers = (first..first + count).map(|number| number % self.rows.len());
        let mut request = EvaluateRequest {
            id: first as u64,
            ..EvaluateRequest::default()
        };
        for number in numbers {
            request.indices.extend_from_slice(&self.rows[number]);
            if self.layout.row_len().is_none() {
                request.row_lengths.push(self.rows[number].len() as u32);
            }
            request.legal_actions.extend_from_slice(&self.legal[number]);
            request.legal_counts.push(self.legal[number].len() as u32);
        }
        request
    }
}
