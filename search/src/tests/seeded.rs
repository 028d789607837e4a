//! Seeded draws: equal seeds give equal games; symmetries, noise and the choice of actions.

use std::collections::{BTreeMap, HashSet};

use games::{Game, Symmetry};

use super::{
    KEY, Shape, TreeGame,
    game::{evaluate, spread},
};
use crate::{FirstPlay, GameKey, Reuse, Search, Settings};

const WIDE: Shape = Shape {
    seed: 3,
    branching: 7,
    depth: 10,
    ends: 5,
    again: 50,
};

fn game(shape: &Shape, settings: &Settings, key: GameKey) -> Vec<(u32, Vec<u32>)> {
    let mut search = Search::new(TreeGame::<2>::of(shape), settings.clone(), key);
    let mut played = Vec::new();
    loop {
        search.decide(evaluate).unwrap();
        let Some(action) = search.choose(1.0) else {
            return played;
        };
        assert_eq!(search.choose(1.0), Some(action));
        played.push((action, search.decision().visits));
        search.advance(action).unwrap();
    }
}

/// The numbers fingerprint every visit. A change of the search's behaviour must replace them and say so.
#[test]
fn search_behaviour_has_its_recorded_signature() {
    let shape = Shape {
        branching: 20,
        depth: 60,
        ..WIDE
    };
    let signature = |leaves, reuse, first_play| {
        let settings = Settings {
            visits: 300,
            leaves,
            reuse,
            first_play,
            ..Settings::default()
        };
        let words = game(&shape, &settings, KEY)
            .into_iter()
            .flat_map(|(action, visits)| [vec![action], visits].concat());
        words.fold(0, |hash, word| spread(hash ^ u64::from(word)))
    };
    let signatures = [
        signature(1, Reuse::Gray, FirstPlay::Parent),
        signature(8, Reuse::Gray, FirstPlay::Parent),
        signature(8, Reuse::Keep, FirstPlay::Zero),
        signature(8, Reuse::Drop, FirstPlay::Reduction),
    ];
    assert_eq!(
        signatures,
        [
            3553166082249598829,
            15803765377111189423,
            6842441082011209159,
            753430280781261879
        ]
    );
}

#[test]
fn only_allowed_symmetries_are_drawn_and_evenly() {
    let settings = Settings {
        visits: 3000,
        ..Settings::default()
    };
    let mut drawn: BTreeMap<(Vec<u8>, u8), u32> = BTreeMap::new();
    let shape = Shape {
        branching: 30,
        depth: 30,
        ends: 0,
        ..WIDE
    };
    let mut search = Search::new(TreeGame::<2>::of(&shape), settings, KEY);
    search
        .decide(|request, priors| {
            let allowed = (0..4)
                .filter(|&number| request.state.allows(Symmetry(number)))
                .collect();
            *drawn.entry((allowed, request.symmetry.0)).or_default() += 1;
            evaluate(request, priors)
        })
        .unwrap();
    for ((allowed, symmetry), count) in &drawn {
        assert!(allowed.contains(symmetry), "{symmetry} of {allowed:?}");
        let all: u32 = drawn
            .iter()
            .filter(|((other, _), _)| other == allowed)
            .map(|(_, count)| count)
            .sum();
        let share = f64::from(*count) / f64::from(all) * allowed.len() as f64;
        assert!(
            (0.7..1.3).contains(&share),
            "{symmetry} of {allowed:?}: {count} of {all}"
        );
    }
    assert!(drawn.keys().any(|(allowed, _)| allowed.len() == 4));
}

#[test]
fn choice_is_proportional_to_visits_to_the_power_of_inverse_temperature() {
    let settings = Settings {
        visits: 60,
        noise_fraction: 0.0,
        ..Settings::default()
    };
    for temperature in [0.25f32, 0.5, 1.0, 3.0] {
        let rounds = 4000;
        let mut chosen: BTreeMap<u32, f64> = BTreeMap::new();
        let mut expected: BTreeMap<u32, f64> = BTreeMap::new();
        for number in 0..rounds {
            let key = GameKey { game: number, ..KEY };
            let mut search = Search::new(TreeGame::<2>::of(&WIDE), settings.clone(), key);
            search.decide(evaluate).unwrap();
            let decision = search.decision();
            let power = |visits: u32| f64::from(visits).powf(1.0 / f64::from(temperature));
            let sum: f64 = decision.visits.iter().map(|&visits| power(visits)).sum();
            for (&action, &visits) in decision.actions.iter().zip(&decision.visits) {
                *expected.entry(action).or_default() += power(visits) / sum;
            }
            *chosen.entry(search.choose(temperature).unwrap()).or_default() += 1.0;
        }
        for (action, expected) in expected {
            let found = chosen.get(&action).copied().unwrap_or(0.0);
            let spread = 4.5 * expected.max(1.0).sqrt();
            assert!(
                (found - expected).abs() < spread,
                "{action} at {temperature}: {found} {expected}"
            );
        }
    }
}

#[test]
fn temperature_zero_takes_the_most_visited_and_draws_among_equals() {
    let settings = Settings {
        visits: 2,
        exploration: 4.0,
        noise_fraction: 0.0,
        first_play: FirstPlay::Zero,
        ..Settings::default()
    };
    let mut chosen = HashSet::new();
    for number in 0..40 {
        let key = GameKey { game: number, ..KEY };
        let mut search = Search::new(TreeGame::<2>::of(&WIDE), settings.clone(), key);
        search.decide(evaluate).unwrap();
        let decision = search.decision();
        let largest = *decision.visits.iter().max().unwrap();
        let action = search.choose(0.0).unwrap();
        let edge = decision
            .actions
            .iter()
            .position(|&other| other == action)
            .unwrap();
        assert_eq!(decision.visits[edge], largest);
        chosen.insert(action);
    }
    assert_eq!(chosen.len(), 2);
}
