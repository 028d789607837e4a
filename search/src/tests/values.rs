//! Values of small trees, compared with trying every action: in games where a player acts several times in a row, and in one-player
//! games, where each action discounts once.

use games::{Game, Player};

use super::{
    KEY, TreeGame,
    game::{legal, small, uniform},
};
use crate::{FirstPlay, Reuse, Search, Settings};

/// Returns the discounted result that best play reaches, for the first player.
fn best<const PLAYERS: u8>(state: &TreeGame<PLAYERS>, discount: f32) -> f32 {
    let results = legal(state).into_iter().map(|action| {
        let mut state = state.clone();
        state.play_legal(action);
        discount * best(&state, discount)
    });
    let best = match state.to_move() {
        Player::First => results.reduce(f32::max),
        Player::Second => results.reduce(f32::min),
    };
    best.unwrap_or_else(|| state.outcome().map_or(0.0, |outcome| outcome.value().get()))
}

/// The evaluator gives uniform priors and the value 0. The speed of convergence depends on the tree, so the trees are fixed.
fn check<const PLAYERS: u8>(seed: u64, discount: f32) {
    let shape = small(seed);
    let settings = Settings {
        visits: 20_000,
        exploration: 1.0,
        first_play: FirstPlay::Zero,
        noise_fraction: 0.0,
        leaves: 1 + seed as u32 % 8,
        reuse: [Reuse::Gray, Reuse::Keep][seed as usize % 2],
        discount,
        ..Settings::default()
    };
    let mut search = Search::new(TreeGame::<PLAYERS>::of(&shape), settings, KEY);
    let expected = best(search.state(), discount);
    let value = |search: &Search<TreeGame<PLAYERS>>| {
        let mover = search.state().to_move();
        search.decision().value.of_first(mover).get()
    };
    search.decide(uniform).unwrap();
    let found = value(&search);
    assert!((found - expected).abs() < 0.1, "{shape:?}: {found} of {expected}");
    // Play by the search reaches the value.
    let mut actions = 0;
    while let Some(action) = search.choose(0.0) {
        search.advance(action).unwrap();
        search.decide(uniform).unwrap();
        actions += 1;
    }
    let earned = value(&search) * discount.powi(actions);
    assert!(
        (earned - expected).abs() < 0.02,
        "{shape:?}: {earned} of {expected}"
    );
}

#[test]
fn values_of_small_trees_converge_to_minimax() {
    (0..100).for_each(|seed| check::<2>(seed, 1.0));
}

#[test]
fn play_in_small_trees_earns_the_best_discounted_result() {
    (0..60).for_each(|seed| check::<1>(seed, [0.6, 0.9, 1.0][seed as usize % 3]));
}
