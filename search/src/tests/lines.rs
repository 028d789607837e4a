//! Searches continued with more visits, and the most visited line.

use games::Game as _;
use proptest::prelude::*;

use super::{
    Shape, TreeGame, any_key, any_settings,
    game::{any_shape, evaluate},
};
use crate::{GameKey, Root, Search, Settings};

fn searched(shape: &Shape, settings: Settings, key: GameKey) -> Search<TreeGame<2>> {
    let mut search = Search::new(TreeGame::<2>::of(shape), settings, key);
    search.decide(evaluate).unwrap();
    search
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_continued_serial_search_equals_a_longer_one(shape in any_shape(), settings in any_settings(Just(1u32)), key in any_key(), more in 1u32..80) {
        // A Gumbel root divides a known number of visits.
        let settings = Settings { root: Root::Puct, ..settings };
        let total = settings.visits + more;
        let at_once = searched(&shape, Settings { visits: total, ..settings.clone() }, key);
        let mut continued = searched(&shape, settings, key);
        continued.set_visits(total);
        continued.decide(evaluate).unwrap();
        prop_assert_eq!(continued.decision(), at_once.decision());
        prop_assert_eq!(continued.visits_done(), at_once.visits_done());
        prop_assert_eq!(continued.principal_variation(None), at_once.principal_variation(None));
    }

    #[test]
    fn principal_variation_is_playable_and_begins_with_a_most_visited_action(shape in any_shape(), settings in any_settings(1u32..8), key in any_key()) {
        let search = searched(&shape, settings, key);
        let decision = search.decision();
        let line = search.principal_variation(None);
        if let Some(solution) = search.solution() {
            prop_assert_eq!(solution, &line);
            prop_assert_eq!(decision.solution, line.first().copied());
            let mut state = TreeGame::<2>::of(&shape);
            prop_assert!(line.iter().all(|&action| state.play(action).is_ok()));
            return Ok(());
        }
        let most = decision.visits.iter().max().copied().unwrap_or(0);
        prop_assert_eq!(line.is_empty(), most == 0);
        let mut state = TreeGame::<2>::of(&shape);
        for &action in &line {
            prop_assert!(state.play(action).is_ok());
        }
        let depths = search.depths();
        prop_assert_eq!(depths.visits, search.visits_done());
        prop_assert!(depths.deepest as usize >= line.len());
        prop_assert!(depths.average() <= f64::from(depths.deepest));
        let visits_of = |action| decision.actions.iter().position(|&other| other == action).map(|at| decision.visits[at]);
        if let Some(&first) = line.first() {
            prop_assert_eq!(visits_of(first), Some(most));
            prop_assert_eq!(search.principal_variation(Some(first)), line);
        }
        for &action in &decision.actions {
            let line = search.principal_variation(Some(action));
            prop_assert_eq!(line.first(), Some(&action));
        }
        prop_assert!(search.principal_variation(Some(u32::MAX)).is_empty());
    }
}
