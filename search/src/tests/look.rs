//! A look at each node of the tree, compared with the rules and with the decision.

use games::{Action, Game as _};
use proptest::prelude::*;

use super::{
    TreeGame, any_key, any_settings,
    game::{any_shape, evaluate, legal},
};
use crate::{
    Reuse, Root, Search, Settings,
    look::{Look, Stage},
};

/// Checks the node behind `path` and all nodes below it. Returns the number of nodes.
fn check(search: &Search<TreeGame<2>>, state: &TreeGame<2>, path: &mut Vec<Action>) -> usize {
    let Look {
        stage,
        mover,
        evaluation,
        visits,
        children,
        proven: _,
    } = search.look(path).unwrap();
    let legal = legal(state);
    let is_over = state.outcome().is_some() || legal.is_empty();
    assert_eq!(stage == Stage::Terminal, is_over);
    assert!(evaluation.is_some());
    let actions: Vec<Action> = children.iter().map(|child| child.action).collect();
    assert_eq!(actions, if is_over { Vec::new() } else { legal });
    assert!(is_over || mover == state.to_move());
    assert_eq!(children.iter().map(|child| child.visits).sum::<u32>(), visits);
    let mut nodes = 1;
    for child in children {
        assert_eq!(child.value.is_some(), child.visits > 0);
        path.push(child.action);
        assert_eq!(search.look(path).map(|below| below.stage), child.stage);
        if let Some(below) = search.look(path) {
            // A visit ends at the node or continues to one of its children; only the first ends at a node that is not terminal.
            let own = u32::from(below.stage != Stage::Terminal);
            assert!(below.stage == Stage::Terminal || child.visits == below.visits + own);
            let mut after = state.clone();
            after.play(child.action).unwrap();
            nodes += check(search, &after, path);
        }
        path.pop();
    }
    nodes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_node_is_found_by_its_path(shape in any_shape(), settings in any_settings(Just(1u32)), key in any_key()) {
        let settings = Settings { reuse: Reuse::Drop, solver: false, exact_leaves: false, ..settings };
        let start = TreeGame::<2>::of(&shape);
        let mut search = Search::new(start.clone(), settings, key);
        search.decide(evaluate).unwrap();
        let decision = search.decision();
        let root = search.look(&[]).unwrap();
        prop_assert_eq!(root.children.iter().map(|child| child.visits).collect::<Vec<_>>(), decision.visits.clone());
        prop_assert_eq!(root.children.iter().map(|child| child.prior).collect::<Vec<_>>(), decision.searched_priors);
        for (child, (value, visits)) in root.children.iter().zip(decision.values.iter().zip(&decision.visits)) {
            prop_assert_eq!(child.value, (*visits > 0).then_some(*value));
        }
        let nodes = check(&search, &start, &mut Vec::new());
        prop_assert_eq!(nodes as u64, search.counters().nodes);
        prop_assert_eq!(search.look(&[u32::MAX]), None);
    }
}

/// Visits one after the other. Returns the action of the decision node that each visit took, with the scores before it.
fn visits<const PLAYERS: u8>(search: &mut Search<TreeGame<PLAYERS>>) -> Vec<(Action, Vec<(Action, f32)>)> {
    let mut taken = Vec::new();
    let wanted = search.settings().visits;
    for number in 1..=wanted {
        let before = search.look(&[]).unwrap();
        search.set_visits(number);
        search.decide(evaluate).unwrap();
        let after = search.look(&[]).unwrap();
        let grown = before.children.iter().zip(&after.children);
        let grown = grown.filter(|(before, after)| after.visits > before.visits);
        let actions: Vec<Action> = grown.map(|(_, after)| after.action).collect();
        let scores = before.children.iter();
        let scores: Option<Vec<(Action, f32)>> = scores
            .map(|child| Some((child.action, child.terms?.score())))
            .collect();
        if let (&[action], Some(scores)) = (&actions[..], scores) {
            taken.push((action, scores));
        }
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// The search is the truth: the next visit takes an action with the largest score.
    #[test]
    fn the_next_visit_takes_the_largest_score(
        shape in any_shape(), settings in any_settings(Just(1u32)), key in any_key(), share in prop_oneof![Just(0.0f32), 0.0f32..1.0],
    ) {
        let settings = Settings {
            root: Root::Puct, reuse: Reuse::Drop, solver: false, exact_leaves: false, stop_when_solved: false, max_share: share, ..settings
        };
        let two = visits(&mut Search::new(TreeGame::<2>::of(&shape), settings.clone(), key));
        let one = visits(&mut Search::new(TreeGame::<1>::of(&shape), settings, key));
        for (taken, scores) in two.into_iter().chain(one) {
            // Of actions without visits, the largest prior is taken: all scores are equal then.
            let largest = scores.iter().map(|(_, score)| *score).fold(f32::NEG_INFINITY, f32::max);
            let found = scores.iter().find(|(action, _)| *action == taken).unwrap().1;
            prop_assert!(found > largest - 1e-4, "{taken} has {found}, the largest is {largest}");
        }
    }
}
