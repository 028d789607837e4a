//! One-player games: one discount for each action, no sign flip.

use games::{Game, MoverValue};

use super::{
    KEY, Shape, TreeGame,
    game::{evaluate, small},
};
use crate::{FirstPlay, Reuse, Search, Settings};

/// Returns the best discounted result below a state, by trying every action.
fn best(state: &TreeGame<1>, discount: f32) -> f32 {
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    if legal.is_empty() {
        return state.outcome().map_or(0.0, |outcome| outcome.value().get());
    }
    let below = |&action: &u32| {
        let mut state = state.clone();
        state.play_legal(action);
        discount * best(&state, discount)
    };
    legal.iter().map(below).fold(f32::NEG_INFINITY, f32::max)
}

/// In a game of one action at a time visit `k` ends `k` actions away, so the sum at the decision node has a closed form.
#[test]
fn each_action_discounts_once() {
    let discount = 0.9f32;
    let shape = Shape {
        seed: 1,
        branching: 1,
        depth: 12,
        ends: 0,
        again: 0,
    };
    let start = TreeGame::<1>::of(&shape);
    let mut states = vec![start.clone()];
    let mut legal = Vec::new();
    loop {
        let mut state = states.last().unwrap().clone();
        state.legal_actions(&mut legal);
        let Some(&action) = legal.first() else { break };
        state.play_legal(action);
        states.push(state);
    }
    let corridor = states.len() - 1;
    assert!(corridor > 4, "the seed gives a short corridor");
    let end = states[corridor]
        .outcome()
        .map_or(0.0, |outcome| outcome.value().get());
    let mut expected = 0.0;
    for visits in 1..30u32 {
        let at = (visits as usize).min(corridor);
        let value = if at == corridor {
            end
        } else {
            states[at].evaluation().1.get()
        };
        expected += value * discount.powi(at as i32);
        let settings = Settings {
            visits,
            discount,
            leaves: 1,
            ..Settings::default()
        };
        let mut search = Search::new(start.clone(), settings, KEY);
        search.decide(evaluate).unwrap();
        let found = search.decision().values[0].get();
        let mean = expected / visits as f32;
        assert!((found - mean).abs() < 1e-5, "{visits}: {found} {mean}");
    }
}

/// The speed of convergence depends on the tree, so the trees are fixed.
#[test]
fn play_in_small_trees_earns_the_best_discounted_result() {
    for seed in 0..60 {
        let shape = small(seed);
        let discount = [0.6, 0.9, 1.0][seed as usize % 3];
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
        let mut search = Search::new(TreeGame::<1>::of(&shape), settings, KEY);
        let expected = best(search.state(), discount);
        let mut actions = 0;
        let mut value = None;
        loop {
            let decided = search.decide(|request, priors| {
                priors.extend(request.legal.iter().map(|_| 1.0 / request.legal.len() as f32));
                MoverValue::new(0.0)
            });
            assert_eq!(decided, Ok(()));
            value = value.or(Some(search.decision().value.get()));
            let Some(action) = search.choose(0.0) else { break };
            search.advance(action).unwrap();
            actions += 1;
        }
        let earned = search.decision().value.get() * discount.powi(actions);
        assert!(
            (earned - expected).abs() < 0.02,
            "{shape:?}: earned {earned} of {expected}"
        );
        let value = value.unwrap();
        assert!(
            (value - expected).abs() < 0.1,
            "{shape:?}: value {value} of {expected}"
        );
    }
}
