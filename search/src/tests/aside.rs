//! Several gathers at the same time: as many visits as one after the other, no virtual loss stays behind, no node is requested
//! twice.

use std::collections::HashSet;

use games::MoverValue;
use proptest::prelude::*;

use super::{
    KEY, Shape, TreeGame, any_key, any_settings,
    batches::no_virtual_loss_is_left,
    game::{any_shape, evaluate, spread},
    invariants::check,
};
use crate::{Evaluation, LeafId, Reuse, Search, Settings};

type Answers = Vec<(LeafId, Vec<f32>, MoverValue)>;

/// Gathers of one search, as threads would make them.
struct Crew<const PLAYERS: u8> {
    search: Search<TreeGame<PLAYERS>>,
    aside: Vec<Answers>,
    asked: HashSet<u64>,
    /// Largest number of gathers at the same time.
    most: usize,
}

impl<const PLAYERS: u8> Crew<PLAYERS> {
    /// Gathers and sets the leaves aside. Returns false if there was none to gather.
    fn gather(&mut self) -> bool {
        let (mut answers, asked) = (Answers::new(), &mut self.asked);
        self.search.gather(|request| {
            assert!(asked.insert(request.state.identity), "requested twice");
            let mut priors = Vec::new();
            let value = evaluate(&request, &mut priors);
            answers.push((request.id, priors, value));
        });
        self.search.set_aside();
        let found = !answers.is_empty();
        if found {
            self.aside.push(answers);
        }
        self.most = self.most.max(self.aside.len());
        found
    }

    /// Applies the evaluations of one of the gathers.
    fn apply(&mut self, place: usize) {
        for (id, priors, value) in self.aside.swap_remove(place) {
            let answer = Evaluation {
                priors: &priors,
                value,
            };
            self.search.apply(id, answer).unwrap();
        }
    }

    /// Completes the decision with at most `threads` gathers at the same time, whose evaluations arrive in an order drawn from
    /// `order`.
    fn decide(&mut self, threads: usize, mut order: u64) {
        while !self.search.is_decided() {
            while self.aside.len() < threads && self.gather() {}
            order = spread(order);
            if !self.aside.is_empty() {
                self.apply(order as usize % self.aside.len());
            }
        }
        assert!(self.aside.is_empty());
        check(&self.search);
    }
}

fn crew<const PLAYERS: u8>(shape: &Shape, settings: &Settings, key: crate::GameKey) -> Crew<PLAYERS> {
    Crew {
        search: Search::new(TreeGame::of(shape), settings.clone(), key),
        aside: Vec::new(),
        asked: HashSet::new(),
        most: 0,
    }
}

fn play<const PLAYERS: u8>(
    shape: &Shape,
    settings: &Settings,
    key: crate::GameKey,
    threads: usize,
    order: u64,
) {
    let mut crew = crew::<PLAYERS>(shape, settings, key);
    let visits = u64::from(settings.visits);
    loop {
        let before = crew.search.counters().visits;
        crew.decide(threads, order);
        let Some(action) = crew.search.choose(0.0) else {
            break;
        };
        let made = crew.search.counters().visits - before;
        // A proof ends a decision early.
        assert!(made == visits || (made < visits && crew.search.is_solved()));
        crew.search.advance(action).unwrap();
        if settings.reuse == Reuse::Drop {
            crew.asked.clear();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn gathers_at_the_same_time_make_all_visits_and_request_no_node_twice(
        shape in any_shape(),
        settings in any_settings(1u32..20),
        key in any_key(),
        threads in 1usize..6,
        order in any::<u64>(),
    ) {
        play::<2>(&shape, &settings, key, threads, order);
        play::<1>(&shape, &settings, key, threads, order);
    }

    /// Setting the leaves of a single gather aside changes nothing.
    #[test]
    fn one_gather_at_a_time_decides_as_a_search_without_threads(
        shape in any_shape(),
        settings in any_settings(1u32..20),
        key in any_key(),
    ) {
        let mut crew = crew::<2>(&shape, &settings, key);
        crew.decide(1, 0);
        let mut alone = Search::new(TreeGame::<2>::of(&shape), settings, key);
        alone.decide(evaluate).unwrap();
        prop_assert_eq!(crew.search.decision(), alone.decision());
    }

    #[test]
    fn leaves_that_are_aside_can_be_abandoned(
        shape in any_shape(),
        settings in any_settings(1u32..20),
        key in any_key(),
        threads in 2usize..6,
    ) {
        let mut crew = crew::<2>(&shape, &settings, key);
        for round in 0u64..20 {
            while crew.aside.len() < threads && crew.gather() {}
            if round % 2 == 0 && !crew.aside.is_empty() {
                crew.apply(0);
            }
            crew.search.abandon();
            crew.asked.clear();
            for (id, priors, value) in crew.aside.drain(..).flatten() {
                let late = crew.search.apply(id, Evaluation { priors: &priors, value });
                prop_assert_eq!(late, Err(crate::ApplyError::UnknownLeaf));
            }
            no_virtual_loss_is_left(&crew.search);
        }
    }
}

/// In a wide tree all threads find leaves.
#[test]
fn virtual_losses_keep_gathers_apart() {
    let shape = Shape {
        seed: 4,
        branching: 30,
        depth: 20,
        ends: 0,
        again: 30,
    };
    let settings = Settings {
        visits: 500,
        leaves: 4,
        ..Settings::default()
    };
    let mut crew = crew::<2>(&shape, &settings, KEY);
    crew.decide(4, 3);
    assert_eq!(crew.most, 4);
}
