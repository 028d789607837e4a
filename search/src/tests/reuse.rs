//! Subtree re-use: gray nodes cost no evaluation, kept nodes keep their visits, dropped nodes are requested again.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{
    KEY, Shape, TreeGame,
    game::{answer, evaluate, gather},
    invariants::check,
};
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
        visits: 200,
        noise_fraction: 0.0,
        leaves: 1,
        reuse,
        ..Settings::default()
    }
}

/// Counts the requests for each state in a game of up to `actions` actions.
fn requests(reuse: Reuse, actions: usize) -> (HashMap<u64, u32>, Search<TreeGame<2>>) {
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
    let (counts, search) = requests(Reuse::Gray, 5);
    assert!(counts.values().all(|&count| count == 1));
    let counters = search.counters();
    assert!(counters.gray_visits > 50, "{counters:?}");
    assert_eq!(counters.root_evaluations, 1);
    check(&search);
}

/// Right after a re-root every node of the kept subtree is gray, and its visits need no evaluation.
#[test]
fn gray_nodes_have_no_statistics_after_a_re_root() {
    let (_, mut search) = requests(Reuse::Gray, 1);
    let decision = search.decision();
    assert!(decision.visits.iter().all(|&visits| visits == 0));
    assert_eq!(decision.value, decision.evaluation);
    let before = search.counters();
    search.gather(|_| ());
    let after = search.counters();
    // The first leaf without evaluation comes after gray nodes became active again.
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
    // One of the edge's visits ended at the node itself.
    let kept: u32 = search.decision().visits.iter().sum();
    assert_eq!(kept + 1, before.visits[edge]);
    search.decide(evaluate).unwrap();
    assert_eq!(search.decision().visits.iter().sum::<u32>(), kept + 200);
    assert_eq!(search.counters().gray_visits, 0);
    check(&search);
}

#[test]
fn dropped_nodes_are_requested_again() {
    let (counts, search) = requests(Reuse::Drop, 3);
    assert!(counts.values().any(|&count| count > 1));
    assert_eq!(search.counters().gray_visits, 0);
    assert_eq!(search.counters().root_evaluations, 3);
    // The tree holds the new decision node alone.
    assert_eq!(search.counters().nodes, 1);
}

proptest! {
    /// An opponent's action may have no visits, and may be played in the middle of a batch.
    #[test]
    fn any_legal_action_can_be_played_at_any_time(picks in prop::collection::vec((0usize..100, 0u32..40), 1..25)) {
        for reuse in [Reuse::Gray, Reuse::Keep, Reuse::Drop] {
            let settings = Settings { leaves: 4, ..settings(reuse) };
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
