//! Memory of the tree: dropped nodes are reclaimed with bounded work, and the limit holds.

use std::collections::HashSet;

use proptest::prelude::*;

use super::{
    KEY, Shape, TreeGame, any_key, any_settings,
    game::{any_shape, evaluate},
    invariants::check,
};
use crate::{Reuse, Search, Settings};

const ENDLESS: Shape = Shape {
    seed: 8,
    branching: 6,
    depth: 4000,
    ends: 0,
    again: 30,
};

#[test]
fn memory_stays_small_in_a_long_game() {
    for reuse in [Reuse::Gray, Reuse::Keep, Reuse::Drop] {
        let settings = Settings {
            visits: 60,
            reuse,
            ..Settings::default()
        };
        let mut search = Search::new(TreeGame::<2>::of(&ENDLESS), settings, KEY);
        let (mut early, mut late, mut created) = (0, 0, 0);
        let mut actions = 0;
        while let (Ok(()), Some(action)) = (search.decide(evaluate), search.choose(1.0)) {
            let bytes = search.counters().bytes;
            created = search.counters().evaluations + search.counters().terminal_visits;
            if actions < 200 {
                early = bytes.max(early)
            } else {
                late = bytes.max(late)
            }
            search.advance(action).unwrap();
            actions += 1;
        }
        assert_eq!(actions, ENDLESS.depth);
        // 4000 decisions of 60 visits, of which the tree never holds more than a few.
        assert!(early.max(late) < 300_000, "{early} {late}");
        assert!(late <= 2 * early, "{early} {late}");
        assert!(
            search.counters().moved <= created,
            "{:?} {created}",
            search.counters()
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Leaves that find no room are evaluated and counted, and visits still add up.
    #[test]
    fn a_full_tree_is_searched_without_growing(
        shape in any_shape(),
        mut settings in any_settings(1u32..20),
        key in any_key(),
        kilobytes in 1usize..8,
    ) {
        settings.tree_bytes = kilobytes << 10;
        settings.solver = false;
        let keeps = settings.reuse == Reuse::Keep;
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings, key);
        let mut kept = 0;
        loop {
            search.decide(evaluate).unwrap();
            let counters = search.counters();
            prop_assert!(counters.bytes as usize <= kilobytes << 10, "{:?}", counters);
            let Some(action) = search.choose(1.0) else { break };
            let sum: u32 = search.decision().visits.iter().sum();
            let visits = search.settings().visits;
            prop_assert_eq!(sum, if search.is_forced() { 0 } else { visits + kept });
            search.advance(action).unwrap();
            if keeps {
                kept = search.decision().visits.iter().sum();
            }
        }
    }

    #[test]
    fn a_full_tree_requests_no_leaf_twice_in_a_batch(shape in any_shape(), key in any_key(), leaves in 2u32..30) {
        let settings = Settings { visits: 200, tree_bytes: 1000, leaves, ..Settings::default() };
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings, key);
        let mut batch = HashSet::new();
        let decided = search.decide(|request, priors| {
            if request.id.index() == 0 {
                batch.clear();
            }
            assert!(batch.insert(request.state.identity), "requested twice in a batch");
            evaluate(request, priors)
        });
        prop_assert_eq!(decided, Ok(()));
        check(&search);
    }

    #[test]
    fn a_search_that_always_compacts_equals_one_that_never_does(
        shape in any_shape(),
        settings in any_settings(1u32..20),
        key in any_key(),
    ) {
        let mut often = Search::new(TreeGame::<2>::of(&shape), settings.clone(), key);
        let mut never = Search::new(TreeGame::<2>::of(&shape), settings, key);
        loop {
            often.next_compaction = 0;
            never.next_compaction = usize::MAX;
            often.decide(evaluate).unwrap();
            never.decide(evaluate).unwrap();
            prop_assert_eq!(often.decision(), never.decision());
            prop_assert_eq!(often.counters().evaluations, never.counters().evaluations);
            let Some(action) = never.choose(1.0) else { break };
            often.advance(action).unwrap();
            never.advance(action).unwrap();
            let reachable = check(&often);
            prop_assert_eq!(reachable, check(&never));
            // Only the kept subtree is left.
            prop_assert_eq!(often.counters().nodes as usize, reachable);
        }
    }
}

#[test]
fn a_full_tree_is_compacted_by_the_next_re_root() {
    let settings = Settings {
        visits: 500,
        tree_bytes: 20_000,
        ..Settings::default()
    };
    let mut search = Search::new(TreeGame::<2>::of(&ENDLESS), settings, KEY);
    for _ in 0..30 {
        let unstored = search.counters().unstored;
        search.decide(evaluate).unwrap();
        assert!(search.counters().unstored > unstored);
        let full = search.counters().nodes;
        search.advance(search.choose(0.0).unwrap()).unwrap();
        assert_eq!(search.counters().nodes as usize, check(&search));
        assert!(search.counters().nodes < full);
    }
}
