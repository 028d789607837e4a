//! Perft: the number of legal action sequences of each length, the usual check of a rules engine.

use crate::{Action, Game};

/// Counts the action sequences of each length from 1 to `depth`. A finished game has no continuation.
/// The last action of a sequence is counted, not played.
pub fn perft<G: Game>(state: &G, depth: usize) -> Vec<u64> {
    Counter::new(state, depth).run(state, true)
}

/// The same numbers, with every last action played as well (what a benchmark of `play` wants).
pub fn perft_played<G: Game>(state: &G, depth: usize) -> Vec<u64> {
    Counter::new(state, depth).run(state, false)
}

/// One state and one action list for each level, used again and again.
struct Counter<G> {
    levels: Vec<(G, Vec<Action>)>,
    counts: Vec<u64>,
}

impl<G: Game> Counter<G> {
    fn new(state: &G, depth: usize) -> Self {
        let levels = (0..depth).map(|_| (state.clone(), Vec::new())).collect();
        Self {
            levels,
            counts: vec![0; depth],
        }
    }

    fn run(mut self, state: &G, counts_last: bool) -> Vec<u64> {
        descend(state, &mut self.levels, &mut self.counts, counts_last);
        self.counts
    }
}

fn descend<G: Game>(state: &G, levels: &mut [(G, Vec<Action>)], counts: &mut [u64], counts_last: bool) {
    let (Some(((child, actions), deeper)), Some((count, more))) =
        (levels.split_first_mut(), counts.split_first_mut())
    else {
        return;
    };
    state.legal_actions(actions);
    *count += actions.len() as u64;
    if counts_last && deeper.is_empty() {
        return;
    }
    for &action in actions.iter() {
        child.clone_from(state);
        child.play_legal(action);
        descend(child, deeper, more, counts_last);
    }
}
