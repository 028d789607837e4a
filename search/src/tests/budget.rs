//! Beginnings and ends: finished games, answers that do not fit, the choice before there is anything to choose from.

use games::MoverValue;
use proptest::prelude::*;

use super::{
    KEY, Shape, TreeGame,
    game::{any_shape, evaluate},
    invariants::check,
};
use crate::{ApplyError, Evaluation, LeafId, Search, Settings};

const SHAPE: Shape = Shape {
    seed: 3,
    branching: 6,
    depth: 10,
    ends: 5,
    again: 50,
};

fn asked(search: &mut Search<TreeGame<2>>) -> Vec<(LeafId, Vec<f32>, MoverValue)> {
    let mut asked = Vec::new();
    search.gather(|request| {
        let (priors, value) = request.state.evaluation();
        asked.push((request.id, priors, value));
    });
    asked
}

#[test]
fn nothing_is_decided_before_the_first_answer() {
    let mut search = Search::new(TreeGame::of(&SHAPE), Settings::default(), KEY);
    assert!(!search.is_waiting() && !search.is_decided());
    assert_eq!(search.choose(1.0), None);
    let decision = search.decision();
    assert!(decision.visits.is_empty() && decision.priors.is_empty());
    assert!(!decision.actions.is_empty());
    let root = asked(&mut search);
    assert_eq!(root.len(), 1);
    assert!(search.is_waiting() && !search.is_decided());
    let (id, priors, value) = &root[0];
    search
        .apply(
            *id,
            Evaluation {
                priors,
                value: *value,
            },
        )
        .unwrap();
    // Evaluated but not searched: the priors are all there is to go by.
    let decision = search.decision();
    let greatest = decision.searched_priors.iter().copied().fold(0.0, f32::max);
    let chosen = search.choose(0.0).unwrap();
    let edge = decision
        .actions
        .iter()
        .position(|&action| action == chosen)
        .unwrap();
    assert_eq!(decision.searched_priors[edge], greatest);
    assert_eq!(decision.value, *value);
}

#[test]
fn a_game_that_is_over_needs_no_search() {
    let mut search = Search::new(TreeGame::of(&SHAPE), Settings::default(), KEY);
    while let (Ok(()), Some(action)) = (search.decide(evaluate), search.choose(1.0)) {
        search.advance(action).unwrap();
    }
    assert!(search.is_decided());
    let evaluations = search.counters().evaluations;
    assert!(asked(&mut search).is_empty());
    assert_eq!(search.counters().evaluations, evaluations);
    let decision = search.decision();
    assert!(decision.actions.is_empty() && decision.visits.is_empty());
    assert!(search.advance(1).is_err());
}

#[test]
fn an_illegal_action_changes_nothing() {
    let settings = Settings {
        leaves: 3,
        ..Settings::default()
    };
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), settings, KEY);
    search.decide(evaluate).unwrap();
    let before = (search.decision(), search.counters(), search.ply());
    assert!(search.advance(63).is_err());
    assert_eq!(before, (search.decision(), search.counters(), search.ply()));
    assert!(search.is_decided());
}

proptest! {
    /// An answer that does not fit is refused with its reason, and leaves no trace: the decision comes out the same.
    #[test]
    fn answers_that_do_not_fit_leave_no_trace(shape in any_shape(), leaves in 1u32..9, fault in 0usize..9) {
        let settings = Settings { leaves, ..Settings::default() };
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings.clone(), KEY);
        let mut clean = search.clone();
        clean.decide(evaluate).unwrap();
        while !search.is_decided() {
            for (id, priors, value) in asked(&mut search) {
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
                match fault {
                    0 | 1 => prop_assert_eq!(
                        refused,
                        Err(ApplyError::PriorCount { expected: priors.len(), found: bad_priors.len() })
                    ),
                    2..=4 => prop_assert!(matches!(refused, Err(ApplyError::Prior { at: 0, .. })), "{:?}", refused),
                    5 => prop_assert!(matches!(refused, Err(ApplyError::PriorSum { .. })), "{:?}", refused),
                    _ => prop_assert!(matches!(refused, Err(ApplyError::Value(_))), "{:?}", refused),
                }
                let unknown = LeafId { index: id.index + 100, ..id };
                let old = LeafId { gather: id.gather - 1, ..id };
                let answer = Evaluation { priors: &priors, value };
                prop_assert_eq!(search.apply(unknown, answer), Err(ApplyError::UnknownLeaf));
                prop_assert_eq!(search.apply(old, answer), Err(ApplyError::UnknownLeaf));
                search.apply(id, answer).unwrap();
                let again = search.apply(id, answer);
                let expected = if search.is_waiting() { ApplyError::Answered } else { ApplyError::UnknownLeaf };
                prop_assert_eq!(again, Err(expected));
            }
            check(&search);
        }
        prop_assert_eq!(search.decision(), clean.decision());
    }
}

/// The driver hands the error on, and the search can go on afterwards.
#[test]
fn the_driver_reports_a_bad_evaluator() {
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), Settings::default(), KEY);
    let bad = search.decide(|_, priors| {
        priors.push(0.5);
        MoverValue::new(0.0)
    });
    assert!(matches!(bad, Err(ApplyError::PriorCount { .. })), "{bad:?}");
    assert!(!search.is_waiting());
    assert_eq!(search.decide(evaluate), Ok(()));
}
