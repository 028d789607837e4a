//! Subtree re-use: gray nodes cost no evaluation, kept ones keep their visits, dropped ones are asked for again.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{KEY, Shape, TreeGame, game::evaluate, invariants::check};
use crate::{Reuse, Search, Settings};

const SHAPE: Shape = Shape {
    seed: 21,
    branching: 5,
    depth: 30,
    ends: 2,
    again: 40,
};

fn settings(reuse: Reuse) -> Settings {
    Settings {
        traversals: 200,
        noise: None,
        leaves: 1,
        reuse,
        ..Settings::default()
    }
}

/// How often each state was asked for in a game of up to `actions` actions.
fn asked(reuse: Reuse, actions: usize) -> (HashMap<u64, u32>, Search<TreeGame<2>>) {
    let mut counts = HashMap::new();
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), settings(reuse), KEY);
    for _ in 0..actions {
        let decided = search.decide(|request, priors| {
            *counts.entry(request.state.identity).or_default() += 1;
            evaluate(request, priors)
        });
        assert_eq!(decided, Ok(()));
        let Some(action) = search.choose(0.0) else { break };
        search.advance(action).unwrap();
    }
    (counts, search)
}

#[test]
fn gray_nodes_cost_no_evaluation() {
    let (counts, search) = asked(Reuse::Gray, 5);
    assert!(counts.values().all(|&count| count == 1));
    let counters = search.counters();
    assert!(counters.gray_visits > 50, "{counters:?}");
    assert_eq!(counters.root_evaluations, 1);
    check(&search);
}

/// Right after a re-root nothing of the old statistics is left, and every node below is gray:
/// traversals through the kept subtree begin from nothing, for free.
#[test]
fn gray_means_from_the_start() {
    let (_, mut search) = asked(Reuse::Gray, 1);
    let decision = search.decision();
    assert!(decision.visits.iter().all(|&visits| visits == 0));
    assert_eq!(decision.value, decision.evaluation);
    let before = search.counters();
    search.gather(|_| ());
    let after = search.counters();
    // The first leaf without evaluation comes only after gray ones were opened again.
    assert!(after.gray_visits > before.gray_visits);
    assert_eq!(after.evaluations, before.evaluations + 1);
}

#[test]
fn kept_nodes_keep_their_visits() {
    let mut search = Search::new(TreeGame::<2>::of(&SHAPE), settings(Reuse::Keep), KEY);
    search.decide(evaluate).unwrap();
    let before = search.decision();
    let action = search.choose(0.0).unwrap();
    let edge = before.actions.iter().position(|&other| other == action).unwrap();
    search.advance(action).unwrap();
    // One of the edge's traversals ended at the node itself.
    let kept: u32 = search.decision().visits.iter().sum();
    assert_eq!(kept + 1, before.visits[edge]);
    search.decide(evaluate).unwrap();
    assert_eq!(search.decision().visits.iter().sum::<u32>(), kept + 200);
    assert_eq!(search.counters().gray_visits, 0);
    check(&search);
}

#[test]
fn dropped_nodes_are_asked_for_again() {
    let (counts, search) = asked(Reuse::Drop, 3);
    assert!(counts.values().any(|&count| count > 1));
    assert_eq!(search.counters().gray_visits, 0);
    assert_eq!(search.counters().root_evaluations, 3);
    // Nothing but the new decision node is there.
    assert_eq!(search.counters().nodes, 1);
}

proptest! {
    /// An action nobody has visited (an opponent's, say) can be played at any time, in the middle of a batch too.
    #[test]
    fn any_legal_action_can_be_played_at_any_time(picks in prop::collection::vec((0usize..100, 0u32..40), 1..25)) {
        for reuse in [Reuse::Gray, Reuse::Keep, Reuse::Drop] {
            let settings = Settings { leaves: 4, ..settings(reuse) };
            let mut search = Search::new(TreeGame::<2>::of(&SHAPE), settings, KEY);
            for &(pick, batches) in &picks {
                for _ in 0..batches {
                    let mut answers = Vec::new();
                    search.gather(|request| {
                        let mut priors = Vec::new();
                        let value = evaluate(&request, &mut priors);
                        answers.push((request.id, priors, value));
                    });
                    for (id, priors, value) in answers {
                        search.apply(id, crate::Evaluation { priors: &priors, value }).unwrap();
                    }
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
