//! Perft: the number of legal action sequences of each length. Comparing it with known counts is the usual test of a rules
//! engine.

use crate::{Action, Game};

/// A position whose perft counts are known from outside: published, or recorded from another program.
#[derive(Clone, Copy, Debug)]
pub struct KnownPerft {
    /// Position as text; `None`: the usual start.
    pub position: Option<&'static str>,
    /// Number of action sequences of the lengths 1, 2, 3, …
    pub counts: &'static [u64],
}

/// Counts the action sequences of each length from 1 to `depth`. A finished game has no continuation.
/// The last action of a sequence is counted, not played.
///
/// ```
/// use games::{Game, connect_four::ConnectFour, perft::perft};
///
/// assert_eq!(perft(&ConnectFour::EMPTY, 4), [7, 49, 343, 2401]);
/// ```
pub fn perft<G: Game>(state: &G, depth: usize) -> Vec<u64> {
    Counter::new(state, depth).run(state, true)
}

/// Counts like [`perft`], and plays the last action of each sequence as well, so that a benchmark times `play`.
pub fn perft_played<G: Game>(state: &G, depth: usize) -> Vec<u64> {
    Counter::new(state, depth).run(state, false)
}

/// One state and one action list for each level, so that counting allocates no memory.
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
