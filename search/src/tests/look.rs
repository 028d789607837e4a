//! A look at each node of the tree, compared with the rules and with the decision.

use games::{Action, Game as _};
use proptest::prelude::*;

use super::{
    TreeGame, any_key, any_settings,
    game::{any_shape, evaluate},
};
use crate::{
    Reuse, Search, Settings,
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
    } = search.look(path).unwrap();
    let mut legal = Vec::new();
    state.legal_actions(&mut legal);
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
            // A visit ends at the node or goes on to one of its children; only the first ends at a node that is not terminal.
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
