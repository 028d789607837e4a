//! Draws positions and assembles batches.
//!
//! Positions are drawn uniformly from the window.
//!
//! Batch `k` of a seed is drawn with ChaCha8, keyed by the seed, on stream `k`: one 64-bit word for each draw, scaled to the window's
//! span. Seed, number and window therefore determine the batch.

use std::sync::Arc;

use proto::{
    decisions::Recorder,
    v1::{Batch, Purpose},
};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{log::drawn::Pick, record::decoded::Decoded, window::Window};

/// Combined with the seed of evaluation batches, so that they differ from training batches of the same seed.
const EVALUATION_SEED_MASK: u64 = 0x7661_6c69_6461_7465;

/// Returns the random numbers below `span` of one batch, one for each call.
fn numbers(seed: u64, number: u64, span: u64) -> impl FnMut() -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    move || ((u128::from(random.next_u64()) * u128::from(span)) >> 64) as u64
}

/// Draws `count` positions with replacement. Returns `None` if the window has no trainable positions.
pub fn draw(window: &Window, seed: u64, number: u64, count: usize) -> Option<Vec<Pick>> {
    if window.positions() == 0 {
        return None;
    }
    let mut drawn = numbers(seed, number, window.span());
    let mut picks = Vec::with_capacity(count);
    while picks.len() < count {
        if let Some((slot, position)) = window.at(drawn()) {
            picks.push(Pick {
                sequence: slot.sequence,
                position,
            });
        }
    }
    Some(picks)
}

/// Draws `count` positions on which a network is measured, of held-out games or of those that training draws from, with replacement and
/// uniformly from the whole window. Returns `None` if the window has no such position.
pub fn draw_for_evaluation(
    window: &Window,
    purpose: Purpose,
    seed: u64,
    number: u64,
    count: usize,
) -> Option<Vec<Pick>> {
    let seed = seed ^ EVALUATION_SEED_MASK;
    match purpose {
        Purpose::HeldOut => draw_held_out(window, seed, number, count),
        Purpose::Trained | Purpose::Training => draw(window, seed, number, count),
    }
}

fn draw_held_out(window: &Window, seed: u64, number: u64, count: usize) -> Option<Vec<Pick>> {
    let mut end = 0;
    let games: Vec<(u64, u64, u32)> = window
        .from(0)
        .filter(|slot| slot.held_out > 0)
        .map(|slot| {
            end += u64::from(slot.held_out);
            (end, slot.sequence, slot.held_out)
        })
        .collect();
    if end == 0 {
        return None;
    }
    let mut numbers = numbers(seed, number, end);
    let picks = (0..count).filter_map(|_| {
        let drawn = numbers();
        let &(end, sequence, positions) = games.get(games.partition_point(|&(end, ..)| end <= drawn))?;
        let begin = end - u64::from(positions);
        Some(Pick {
            sequence,
            position: (drawn - begin) as u32,
        })
    });
    Some(picks.collect())
}

/// Assembles the batch of the drawn positions, in the order of the draw, with search results if `with_decisions`. `games` are the games
/// of the picks.
///
/// Returns `None` if a game does not have a drawn position, which happens for damaged records only.
pub fn assemble(picks: &[Pick], games: &[Arc<Decoded>], with_decisions: bool) -> Option<Batch> {
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
    let mut decisions = with_decisions.then(Recorder::default);
    let mut owners = Vec::new();
    let is_whole = picks.iter().zip(games).all(|(pick, game)| {
        let is_known = game.append(pick.position, pick.sequence, &mut batch);
        game.append_territory(pick.position, &mut batch, &mut owners);
        is_known
            && decisions
                .as_mut()
                .is_none_or(|decisions| game.append_decision(pick.position, decisions))
    });
    batch.territories = owners.into();
    batch.decisions = decisions.map(Recorder::finish_batch);
    is_whole.then_some(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        let mut window = Window::new(1000);
        for sequence in 1..60 {
            window.push(sequence, (sequence % 7 * 9) as u32, 1);
        }
        window.exclude(50);
        window
    }

    /// Pearson's χ² test over every position of the window, with 5-σ bounds of the normal approximation.
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
        assert_eq!(
            counts.len(),
            cells,
            "exactly the positions of the window are drawn"
        );
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
    fn held_out_positions_are_drawn_for_evaluation_only() {
        use crate::window::held_out::PositionCounts;

        let mut window = Window::new(1000);
        for sequence in 1..=60u64 {
            let is_held_out = sequence % 5 == 0;
            let (trainable, held_out) = if is_held_out { (0, 3) } else { (4, 0) };
            window.push(sequence, PositionCounts { trainable, held_out }, 1);
        }
        let picks = draw_held_out(&window, 1, 1, 2_000).unwrap();
        let seen: std::collections::BTreeSet<(u64, u32)> =
            picks.iter().map(|pick| (pick.sequence, pick.position)).collect();
        let all = (1..=12).flat_map(|game| (0..3).map(move |position| (5 * game, position)));
        assert!(seen.into_iter().eq(all));
        assert_eq!(draw_held_out(&window, 1, 1, 50).unwrap(), picks[..50]);
        // Training never draws them.
        let trained = draw(&window, 1, 1, 5_000).unwrap();
        assert!(trained.iter().all(|pick| pick.sequence % 5 > 0));
        window.exclude(5);
        assert!(
            draw_held_out(&window, 1, 2, 500)
                .unwrap()
                .iter()
                .all(|pick| pick.sequence > 5)
        );
        assert_eq!(draw_held_out(&Window::new(5), 1, 1, 1), None);
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
