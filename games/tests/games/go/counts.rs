//! Known numbers: legal positions (Tromp and Farnebäck 2006), perfect play on the smallest board.

use games::{
    Game,
    go::{Go, Rules},
};

use super::plain;
use crate::shared::{drawer, legal};

/// Counts the boards of this size that are read as positions.
fn legal_positions(size: u32) -> usize {
    let squares = size * size;
    let letters = |mut number: u32| -> String {
        let next = |_| {
            let letter = ['-', 'X', 'O'][number as usize % 3];
            number /= 3;
            letter
        };
        (0..squares).map(next).collect()
    };
    (0..3u32.pow(squares))
        .filter(|&number| Go::start(&plain(size), Some(&format!("{} X 0 -", letters(number)))).is_ok())
        .count()
}

#[test]
fn boards_have_the_published_numbers_of_legal_positions() {
    assert_eq!(legal_positions(2), 57);
    assert_eq!(legal_positions(3), 12_675);
}

/// Returns the value of a state for the first player with best play, by a search that stops at the best value.
fn best(state: &Go) -> f32 {
    if let Some(outcome) = state.outcome() {
        return outcome.value().get();
    }
    let mover = state.to_move();
    if let Some(known) = state.known() {
        return known.outcome.value().get();
    }
    let mut found = -mover.sign();
    for action in legal(state) {
        let mut next = state.clone();
        next.play_legal(action);
        let value = best(&next);
        if (value - found) * mover.sign() > 0.0 {
            found = value;
        }
        if found == mover.sign() {
            break;
        }
    }
    found
}

#[test]
fn black_wins_two_by_two_by_one_point() {
    for (komi, value) in [(0.5, 1.0), (1.0, 0.0), (1.5, -1.0)] {
        let rules = Rules { komi, ..plain(2) };
        assert_eq!(best(&Go::start(&rules, None).unwrap()), value, "komi {komi}");
    }
}

/// Random games in which nobody passes while a stone is legal.
#[test]
fn a_game_ends_at_the_bound_of_its_length() {
    let bound = 2 * 25 + 40;
    let mut bounded = 0;
    for seed in 0..20 {
        let (mut state, mut random, mut played) = (Go::start(&plain(5), None).unwrap(), drawer(seed), 0);
        while state.outcome().is_none() {
            let actions = legal(&state);
            let stones = actions.len() - 1;
            state.play(actions[random(stones)]).unwrap();
            played += 1;
        }
        assert!(played <= bound);
        if state.ending() == Some("max-moves") {
            assert_eq!(played, bound);
            assert!(state.territory().is_some());
            bounded += 1;
        }
    }
    assert!(bounded > 0);
}
