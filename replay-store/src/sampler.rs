//! Drawing positions, and making batches of them.
//!
//! Batch `k` of a seed is drawn by ChaCha8 keyed by the seed, on stream `k`: one 64-bit word for each draw,
//! scaled to the window's span. So a batch is determined by (seed, number, window), whoever asks and whenever.

use std::sync::Arc;

use proto::v1::Batch;
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{decoded::Decoded, window::Window};

/// A drawn position: the game, and the number of the position among its trainable ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The game's sequence number.
    pub sequence: u64,
    /// Which of its trainable positions.
    pub position: u32,
}

/// Draws `count` positions uniformly, with replacement; `None` from a window that has none.
pub fn draw(window: &Window, seed: u64, number: u64, count: usize) -> Option<Vec<Pick>> {
    if window.positions() == 0 {
        return None;
    }
    let span = u128::from(window.span());
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    let mut picks = Vec::with_capacity(count);
    while picks.len() < count {
        let scaled = (u128::from(random.next_u64()) * span) >> 64;
        if let Some((slot, position)) = window.at(scaled as u64) {
            picks.push(Pick {
                sequence: slot.sequence,
                position,
            });
        }
    }
    Some(picks)
}

/// Puts the drawn positions together, in the order of the draw; `games` are the picks' games.
///
/// `None` where a game does not have the position that was drawn, which no whole record brings about.
pub fn assemble(picks: &[Pick], games: &[Arc<Decoded>]) -> Option<Batch> {
    let (mut rows, mut visits) = (0, 0);
    for (pick, game) in picks.iter().zip(games) {
        let sizes = game.sizes(pick.position);
        rows += sizes.0;
        visits += sizes.1;
    }
    let count = picks.len();
    let mut batch = Batch {
        positions: count as u32,
        rows: Vec::with_capacity(rows),
        visit_counts: Vec::with_capacity(count),
        visit_actions: Vec::with_capacity(visits),
        visits: Vec::with_capacity(visits),
        results: Vec::with_capacity(count),
        root_values: Vec::with_capacity(count),
        game_sequences: Vec::with_capacity(count),
        plies: Vec::with_capacity(count),
        ..Batch::default()
    };
    picks
        .iter()
        .zip(games)
        .all(|(pick, game)| game.append(pick.position, pick.sequence, &mut batch))
        .then_some(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let mut window = Window::new(1000);
        for sequence in 1..60 {
            window.push(sequence, (sequence % 7 * 9) as u32, 1);
        }
        window.lose(50);
        window
    }

    /// Pearson's χ² over every position of the window: 5-σ bounds of its normal approximation.
    #[test]
    fn draws_are_uniform_over_positions() {
        let window = window();
        let cells = window.positions() as usize;
        let mut counts = std::collections::HashMap::new();
        let draws = cells * 200;
        for number in 0..20 {
            for pick in draw(&window, 11, number, draws / 20).unwrap() {
                *counts.entry((pick.sequence, pick.position)).or_insert(0u32) += 1;
            }
        }
        assert_eq!(counts.len(), cells, "every position is drawn, and no other");
        let expected = (draws / 20 * 20) as f64 / cells as f64;
        let chi2: f64 = counts
            .values()
            .map(|&count| (f64::from(count) - expected).powi(2) / expected)
            .sum();
        let freedom = (cells - 1) as f64;
        let deviation = (chi2 - freedom) / (2.0 * freedom).sqrt();
        assert!(
            deviation.abs() < 5.0,
            "χ² = {chi2} at {freedom} degrees of freedom"
        );
    }

    #[test]
    fn a_batch_is_determined_by_seed_number_and_window() {
        let window = window();
        assert_eq!(draw(&window, 1, 2, 100), draw(&window, 1, 2, 100));
        assert_ne!(draw(&window, 1, 2, 100), draw(&window, 1, 3, 100));
        assert_ne!(draw(&window, 1, 2, 100), draw(&window, 2, 2, 100));
        assert_eq!(draw(&Window::new(5), 1, 2, 100), None);
    }
}
