//! Searches in canonical colours: the generator game, whose colours 2 to 9 can be permuted.

use std::collections::BTreeMap;

use games::{
    Game, MoverValue, Symmetry,
    generator::{Encoding, GeneratorGame, Grid, Problem, Rules},
};

use super::{KEY, game::spread};
use crate::{Decision, FirstPlay, LeafRequest, Search, Settings};

/// Symmetry that denotes the canonical image.
const CANONICAL: Symmetry = Symmetry(u8::MAX);

fn settings() -> Settings {
    Settings {
        visits: 60,
        first_play: FirstPlay::Zero,
        noise_fraction: 0.0,
        discount: 0.97,
        ..Settings::default()
    }
}

/// Returns a problem of two stripes on a background.
fn striped(colors: [u8; 3]) -> GeneratorGame {
    let [background, first, second] = colors;
    let rows = vec![vec![background; 6], vec![first; 6], vec![second; 6]];
    let problem = Problem::Draw(Grid::from_rows(&rows).unwrap());
    let rules = Rules {
        move_limit: 12,
        ..Rules::default()
    };
    GeneratorGame::posed(&rules, problem)
}

/// Returns random numbers that depend on the row and the policy entries of a leaf.
fn evaluate(leaf: &LeafRequest<'_, GeneratorGame>, priors: &mut Vec<f32>) -> MoverValue {
    let mut row = Vec::new();
    leaf.state.write_row(Encoding::Plain, leaf.symmetry, &mut row);
    let hash = row.iter().fold(0, |hash, &word| spread(hash ^ u64::from(word)));
    let unit = |number: u64| (spread(hash ^ number) >> 40) as f32 / (1u64 << 24) as f32;
    let entry = |&action: &u32| leaf.state.policy_index(Encoding::Plain, leaf.symmetry, action);
    assert!(leaf.legal.iter().map(entry).is_sorted());
    let weights: Vec<f32> = leaf
        .legal
        .iter()
        .map(|action| 0.1 + unit(u64::from(entry(action))))
        .collect();
    let sum: f32 = weights.iter().sum();
    priors.extend(weights.iter().map(|weight| weight / sum));
    MoverValue::new(unit(1 << 40))
}

/// Returns visits and prior of each policy entry in the canonical colours.
fn by_entry(state: &GeneratorGame, decision: &Decision) -> BTreeMap<u32, (u32, u32)> {
    let numbers = decision.visits.iter().zip(&decision.priors);
    let entries = decision
        .actions
        .iter()
        .map(|&action| state.policy_index(Encoding::Plain, CANONICAL, action));
    entries
        .zip(numbers.map(|(&visits, prior)| (visits, prior.to_bits())))
        .collect()
}

#[test]
fn play_is_the_same_in_permuted_colors() {
    for colors in [[2, 3, 4], [9, 4, 2], [5, 8, 3]] {
        let mut searches = [[2, 3, 4], colors].map(|colors| Search::new(striped(colors), settings(), KEY));
        while searches[0].state().outcome().is_none() {
            let [first, second] = searches.each_mut().map(|search| {
                search.decide(evaluate).unwrap();
                let decision = search.decision();
                let state = search.state().clone();
                let found = (by_entry(&state, &decision), decision.value.get());
                let action = search.choose(0.0).unwrap();
                search.advance(action).unwrap();
                (found, state.policy_index(Encoding::Plain, CANONICAL, action))
            });
            assert_eq!(first, second);
        }
        assert_eq!(searches[0].state().outcome(), searches[1].state().outcome());
    }
}

#[test]
fn priors_belong_to_the_actions_in_the_colors_of_the_state() {
    let mut search = Search::new(striped([7, 3, 5]), settings(), KEY);
    let mut requested = BTreeMap::new();
    for _ in 0..8 {
        search
            .decide(|leaf, priors| {
                let value = evaluate(leaf, priors);
                let own = leaf.legal.iter().copied().zip(priors.iter().copied());
                requested.insert(leaf.state.position(), own.collect::<BTreeMap<u32, f32>>());
                value
            })
            .unwrap();
        let decision = search.decision();
        let expected = &requested[&search.state().position()];
        assert!(decision.actions.is_sorted() && decision.actions.len() == expected.len());
        for (action, &prior) in decision.actions.iter().zip(&decision.priors) {
            assert!((prior - expected[action]).abs() < 1e-3);
        }
        let color = decision
            .actions
            .iter()
            .copied()
            .rfind(|action| (25..35).contains(&(action % 38)));
        search.advance(color.unwrap()).unwrap();
    }
}

#[test]
fn without_symmetries_the_colors_of_the_state_are_evaluated() {
    let settings = Settings {
        random_symmetry: false,
        ..settings()
    };
    let mut search = Search::new(striped([7, 3, 5]), settings, KEY);
    let decided = search.decide(|leaf, priors| {
        assert_eq!(leaf.symmetry, Symmetry::IDENTITY);
        evaluate(leaf, priors)
    });
    assert_eq!(decided, Ok(()));
}
