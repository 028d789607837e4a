//! Several leaves at once: no virtual loss stays behind, no node is requested twice, arrival order does not matter.

use std::{cmp::Ordering, collections::HashSet};

use proptest::prelude::*;

use super::{
    KEY, Shape, TreeGame, any_key, any_settings,
    game::{Answers, answer, any_shape, evaluate, gather, spread},
    invariants::check,
};
use crate::{Decision, Evaluation, Reuse, Search, Settings};

/// Plays a game; the evaluations of each batch arrive in an order drawn from `order` (0: in gather order).
fn play<const PLAYERS: u8>(
    shape: &Shape,
    settings: &Settings,
    key: crate::GameKey,
    order: u64,
) -> Vec<(Decision, crate::Counters)> {
    let mut search = Search::new(TreeGame::<PLAYERS>::of(shape), settings.clone(), key);
    let mut batches = order;
    let mut story = Vec::new();
    loop {
        while !search.is_decided() {
            let mut answers = gather(&mut search);
            if order != 0 {
                batches = spread(batches);
                answers.sort_by_key(|(id, ..)| spread(batches ^ id.index() as u64));
            }
            answer(&mut search, answers);
            check(&search);
        }
        story.push((search.decision(), search.counters()));
        match search.choose(1.0) {
            Some(action) => search.advance(action).unwrap(),
            None => return story,
        }
        check(&search);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn visit_counts_add_up_after_every_batch(shape in any_shape(), settings in any_settings(1u32..40), key in any_key()) {
        play::<2>(&shape, &settings, key, 0);
        play::<1>(&shape, &settings, key, 0);
    }

    #[test]
    fn arrival_order_does_not_matter(
        shape in any_shape(),
        settings in any_settings(2u32..40),
        key in any_key(),
        order in 1u64..,
    ) {
        prop_assert_eq!(play::<2>(&shape, &settings, key, 0), play::<2>(&shape, &settings, key, order));
    }

    /// Every state of these trees differs, so a game that keeps its tree requests each at most once.
    #[test]
    fn no_node_is_requested_twice(shape in any_shape(), mut settings in any_settings(1u32..40), key in any_key()) {
        if settings.reuse == Reuse::Drop {
            settings.reuse = Reuse::Gray;
        }
        let most = settings.leaves;
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings, key);
        let mut asked = HashSet::new();
        loop {
            let visits = search.settings().visits;
            let before = search.counters().visits;
            while !search.is_decided() {
                let mut answers = Answers::new();
                search.gather(|request| {
                    assert!(asked.insert(request.state.identity), "requested twice");
                    let mut priors = Vec::new();
                    let value = evaluate(&request, &mut priors);
                    assert_eq!(request.legal.len(), priors.len());
                    answers.push((request.id, priors, value));
                });
                prop_assert!(answers.len() <= most as usize || search.has_gumbel_root() && answers.len() <= 16);
                // While leaves are pending, a gather does nothing.
                if !answers.is_empty() {
                    prop_assert_eq!(gather(&mut search).len(), 0);
                }
                answer(&mut search, answers);
            }
            let Some(action) = search.choose(0.0) else { break };
            let made = search.counters().visits - before;
            let is_short = search.is_solved() || search.is_forced();
            let is_long = search.settings().solver && made < u64::from(visits) + search.decision().actions.len() as u64;
            let is_allowed = match made.cmp(&visits.into()) {
                Ordering::Less => is_short,
                Ordering::Equal => true,
                Ordering::Greater => is_long,
            };
            prop_assert!(is_allowed, "{} visits", made);
            search.advance(action).unwrap();
        }
    }

    #[test]
    fn abandoned_leaves_leave_no_virtual_loss(shape in any_shape(), settings in any_settings(1u32..20), key in any_key()) {
        let mut search = Search::new(TreeGame::<2>::of(&shape), settings, key);
        let mut late = Answers::new();
        for round in 0u64.. {
            if search.is_decided() {
                break;
            }
            let answers = gather(&mut search);
            for (id, priors, value) in &late {
                let answer = Evaluation { priors, value: *value };
                prop_assert_eq!(search.apply(*id, answer), Err(crate::ApplyError::UnknownLeaf));
            }
            // Every other round, half of the evaluations arrive and then the batch is abandoned.
            let is_abandoned = round % 2 == 0;
            for (id, priors, value) in &answers {
                if !is_abandoned || id.index() % 2 == 0 {
                    search.apply(*id, Evaluation { priors, value: *value }).unwrap();
                }
            }
            if is_abandoned {
                search.abandon();
                late = answers;
            }
            prop_assert_eq!(search.root_visits().iter().sum::<u32>(), search.visits_done);
            no_virtual_loss_is_left(&search);
        }
    }
}

fn no_virtual_loss_is_left(search: &Search<TreeGame<2>>) {
    use crate::tree::{ACTION, NodeId, virtual_losses};
    let mut at = 0;
    while at < search.tree.words() {
        let node = NodeId(at as u32);
        let (size, is_statistics) = search.tree.size_at(at);
        at += size;
        if is_statistics {
            continue;
        }
        assert!(
            search
                .tree
                .column(node, ACTION)
                .iter()
                .all(|&word| virtual_losses(word) == 0)
        );
    }
}

/// In a wide tree the virtual losses of the first leaf send the other visits elsewhere.
#[test]
fn virtual_losses_fill_most_of_a_batch() {
    let shape = Shape {
        seed: 4,
        branching: 30,
        depth: 20,
        ends: 0,
        again: 30,
    };
    let settings = Settings {
        visits: 2000,
        leaves: 16,
        ..Settings::default()
    };
    let mut search = Search::new(TreeGame::<2>::of(&shape), settings, KEY);
    let (mut batches, mut leaves) = (0, 0);
    while !search.is_decided() {
        let answers = gather(&mut search);
        batches += 1;
        leaves += answers.len();
        answer(&mut search, answers);
    }
    let fill = leaves as f64 / f64::from(batches) / 16.0;
    assert!(fill > 0.5, "{fill}");
}
