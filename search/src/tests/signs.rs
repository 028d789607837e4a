//! Signs of values in games where a player acts several times in a row.

use games::{Game, MoverValue, Player};

use super::{KEY, Shape, TreeGame, game::small};
use crate::{FirstPlay, Reuse, Search, Settings};

/// Returns the result that both sides can force, for the first player, by trying every action.
fn minimax(state: &TreeGame<2>) -> f32 {
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
    if legal.is_empty() {
        return state.outcome().map_or(0.0, |outcome| outcome.value().get());
    }
    let results = legal.iter().map(|&action| {
        let mut state = state.clone();
        state.play_legal(action);
        minimax(&state)
    });
    match state.to_move() {
        Player::First => results.fold(-1.0, f32::max),
        Player::Second => results.fold(1.0, f32::min),
    }
}

fn uniform(request: &crate::LeafRequest<'_, TreeGame<2>>, priors: &mut Vec<f32>) -> MoverValue {
    priors.extend(request.legal.iter().map(|_| 1.0 / request.legal.len() as f32));
    MoverValue::new(0.0)
}

/// The evaluator gives uniform priors and the value 0. The speed of convergence depends on the tree, so the trees are
/// fixed.
#[test]
fn values_of_small_trees_converge_to_minimax() {
    for seed in 0..100 {
        let shape = small(seed);
        let settings = Settings {
            visits: 20_000,
            exploration: 1.0,
            first_play: FirstPlay::Zero,
            noise_fraction: 0.0,
            leaves: 1 + seed as u32 % 8,
            reuse: [Reuse::Gray, Reuse::Keep][seed as usize % 2],
            ..Settings::default()
        };
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings, KEY);
        let expected = minimax(search.state());
        search.decide(uniform).unwrap();
        let found = search.decision().value.of_first(search.state().to_move()).get();
        assert!((found - expected).abs() < 0.1, "{shape:?}: {found} of {expected}");
        // Both sides reach the value when they play by the search.
        while let Some(action) = search.choose(0.0) {
            search.advance(action).unwrap();
            search.decide(uniform).unwrap();
        }
        let end = search.decision().value.of_first(search.state().to_move()).get();
        assert_eq!(end, expected, "{shape:?}");
    }
}

/// The first player is ahead by the same value in every state, whoever acts.
#[test]
fn sign_of_a_value_is_kept_through_a_run_of_one_players_actions() {
    for again in [0, 100] {
        let shape = Shape {
            seed: 2,
            branching: 3,
            depth: 60,
            ends: 0,
            again,
        };
        let settings = Settings {
            visits: 40,
            reuse: Reuse::Gray,
            ..Settings::default()
        };
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings, KEY);
        for _ in 0..6 {
            search
                .decide(|request, priors| {
                    uniform(request, priors);
                    MoverValue::new(0.5 * request.state.to_move().sign())
                })
                .unwrap();
            let decision = search.decision();
            let sign = decision.mover.sign();
            assert!(decision.value.get() * sign > 0.3, "{decision:?}");
            for (value, visits) in decision.values.iter().zip(&decision.visits) {
                assert!(*visits == 0 || value.get() * sign >= 0.0, "{decision:?}");
            }
            let Some(action) = search.choose(0.0) else { break };
            search.advance(action).unwrap();
        }
    }
}
