//! Random games, whose actions follow from numbers that proptest draws and shrinks.

use games::{Action, Game};
use proptest::{collection::vec, prelude::*};

/// Returns numbers that choose the actions of a game of at most `length` actions.
pub fn choices(length: usize) -> impl Strategy<Value = Vec<u16>> {
    vec(any::<u16>(), 0..length)
}

/// Returns the legal actions of a state.
pub fn legal<G: Game>(state: &G) -> Vec<Action> {
    let mut actions = vec![u32::MAX];
    state.legal_actions(&mut actions);
    actions
}

/// Plays the chosen actions. `look` is called with every state and the action about to be played in it.
pub fn play<G: Game>(state: &mut G, choices: &[u16], mut look: impl FnMut(&G, Action)) {
    for &choice in choices {
        let actions = legal(state);
        let Some(&action) = actions.get(usize::from(choice) % actions.len().max(1)) else {
            return;
        };
        look(state, action);
        state.play(action).unwrap();
    }
}
