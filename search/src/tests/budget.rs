//! Limits of a decision: before the first evaluation, after the end of the game, with bad evaluations, with a limited root.

use games::{Game as _, MoverValue};
use proptest::prelude::*;

use super::{
    KEY, Shape, TreeGame,
    game::{answer, any_shape, evaluate, gather, legal, uniform},
    invariants::check,
};
use crate::{ApplyError, Evaluation, LeafId, Reuse, Search, Settings};

const SHAPE: Shape = Shape {
    seed: 3,
    branching: 6,
    depth: 10,
    ends: 5,
    again: 50,
};

#[test]
fn nothing_is_chosen_before_the_first_evaluation() {
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), Settings::default(), KEY);
    assert!(!search.is_waiting() && !search.is_decided());
    assert_eq!(search.choose(1.0), None);
    let decision = search.decision();
    assert!(decision.visits.is_empty() && decision.priors.is_empty());
    assert!(!decision.actions.is_empty());
    let root = gather(&mut search);
    assert_eq!(root.len(), 1);
    assert!(search.is_waiting() && !search.is_decided());
    let value = root[0].2;
    answer(&mut search, root);
    // Without visits the priors decide.
    let decision = search.decision();
    let largest = decision.searched_priors.iter().copied().fold(0.0, f32::max);
    let chosen = search.choose(0.0).unwrap();
    let edge = decision
        .actions
        .iter()
        .position(|&action| action == chosen)
        .unwrap();
    assert_eq!(decision.searched_priors[edge], largest);
    assert_eq!(decision.value, value);
}

#[test]
fn a_search_says_that_the_rules_failed_in_a_state_that_it_came_to() {
    let mut seen = [false; 2];
    for seed in 0..200 {
        let shape = Shape {
            seed,
            branching: 3,
            depth: 2,
            ends: 80,
            again: 50,
        };
        let root = TreeGame::<2>::of(&shape);
        let fails = legal(&root).into_iter().any(|action| {
            let mut next = root.clone();
            next.play_legal(action);
            next.fault().is_some()
        });
        let settings = Settings {
            visits: 100,
            ..Settings::default()
        };
        let mut search = Search::new(root, settings, KEY);
        search.decide(uniform).unwrap();
        assert_eq!(search.fault(), fails.then_some("a dead end"), "seed {seed}");
        seen[usize::from(fails)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn a_game_that_is_over_needs_no_search() {
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), Settings::default(), KEY);
    while let (Ok(()), Some(action)) = (search.decide(evaluate), search.choose(1.0)) {
        search.advance(action).unwrap();
    }
    assert!(search.is_decided());
    let evaluations = search.counters().evaluations;
    assert!(gather(&mut search).is_empty());
    assert_eq!(search.counters().evaluations, evaluations);
    let decision = search.decision();
    assert!(decision.actions.is_empty() && decision.visits.is_empty());
    let before = (search.decision(), search.counters(), search.ply());
    assert!(search.advance(1).is_err());
    assert_eq!(before, (search.decision(), search.counters(), search.ply()));
}

proptest! {
    #[test]
    fn bad_evaluations_are_refused_and_change_nothing(shape in any_shape(), leaves in 1u32..9, fault in 0usize..9) {
        let settings = Settings { leaves, ..Settings::default() };
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings.clone(), KEY);
        let mut clean = search.clone();
        clean.decide(evaluate).unwrap();
        while !search.is_decided() {
            for (id, priors, value) in gather(&mut search) {
                let (mut bad_priors, mut bad_value) = (priors.clone(), value);
                match fault {
                    0 => bad_priors.push(0.0),
                    1 => bad_priors.truncate(priors.len() - 1),
                    2 => bad_priors[0] = f32::NAN,
                    3 => {
                        // The sum stays 1 where there is another prior.
                        bad_priors[0] = -0.25;
                        if let [_, .., last] = bad_priors.as_mut_slice() {
                            *last += priors[0] + 0.25;
                        }
                    }
                    4 => bad_priors[0] = f32::INFINITY,
                    5 => bad_priors[0] += 0.02,
                    6 => bad_value = MoverValue::new(1.001),
                    7 => bad_value = MoverValue::new(f32::NAN),
                    _ => bad_value = MoverValue::new(f32::NEG_INFINITY),
                }
                let refused = search.apply(id, Evaluation { priors: &bad_priors, value: bad_value });
                let reason = match fault {
                    0 | 1 => format!("{} priors for {} legal actions", bad_priors.len(), priors.len()),
                    2..=4 => format!("prior 0 is {}", bad_priors[0]),
                    5 => "the priors sum to".into(),
                    _ => "value ".into(),
                };
                let refused = refused.unwrap_err().to_string();
                prop_assert!(refused.starts_with(&reason), "{}", refused);
                let unknown = LeafId { index: id.index + 100, ..id };
                let old = LeafId { gather: id.gather - 1, ..id };
                let answer = Evaluation { priors: &priors, value };
                prop_assert_eq!(search.apply(unknown, answer), Err(ApplyError::UnknownLeaf));
                prop_assert_eq!(search.apply(old, answer), Err(ApplyError::UnknownLeaf));
                search.apply(id, answer).unwrap();
                let again = search.apply(id, answer);
                let expected = if search.is_waiting() { ApplyError::AlreadyEvaluated } else { ApplyError::UnknownLeaf };
                prop_assert_eq!(again, Err(expected));
            }
            check(&search);
        }
        prop_assert_eq!(search.decision(), clean.decision());
    }

    /// An opponent's action may have no visits, and may be played in the middle of a batch.
    #[test]
    fn any_legal_action_can_be_played_at_any_time(picks in prop::collection::vec((0usize..100, 0u32..40), 1..25)) {
        for reuse in [Reuse::Gray, Reuse::Keep, Reuse::Drop] {
            let settings = Settings { reuse, ..Settings::default() };
            let mut search = Search::new(TreeGame::<2>::of(&SHAPE), settings, KEY);
            for &(pick, batches) in &picks {
                for _ in 0..batches {
                    let answers = gather(&mut search);
                    answer(&mut search, answers);
                }
                search.gather(|_| ());
                let actions = search.decision().actions;
                if actions.is_empty() {
                    break;
                }
                search.advance(actions[pick % actions.len()]).unwrap();
                prop_assert!(!search.is_waiting());
            }
            search.decide(evaluate).unwrap();
        }
    }
}

#[test]
fn decide_returns_the_error_of_a_bad_evaluator_and_can_be_repeated() {
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), Settings::default(), KEY);
    let bad = search.decide(|_, priors| {
        priors.push(0.5);
        MoverValue::new(0.0)
    });
    assert!(matches!(bad, Err(ApplyError::Invalid(_))), "{bad:?}");
    assert!(!search.is_waiting());
    assert_eq!(search.decide(evaluate), Ok(()));
}

#[test]
fn a_restricted_root_has_the_allowed_actions_until_the_next_decision() {
    let wide = |seed| {
        TreeGame::<2>::of(&Shape {
            seed,
            branching: 12,
            ends: 0,
            ..SHAPE
        })
    };
    let start = (0..).map(wide).find(|state| legal(state).len() > 2).unwrap();
    let all = legal(&start);
    let mut search = Search::new(start, Settings::default(), KEY);
    search.decide(evaluate).unwrap();
    // Actions that are not legal are ignored.
    let allowed = [all[0], all[2], 63];
    search.restrict_root(&allowed);
    search.decide(uniform).unwrap();
    let decision = search.decision();
    assert_eq!(decision.actions, [all[0], all[2]]);
    assert_eq!(decision.visits.iter().sum::<u32>(), Settings::default().visits);

    search.advance(all[0]).unwrap();
    let all = legal(search.state());
    search.decide(uniform).unwrap();
    assert_eq!(search.decision().actions, all);

    search.restrict_root(&[63]);
    assert_eq!(search.decision().actions, all, "no allowed action is legal");
}
