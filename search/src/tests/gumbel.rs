//! The Gumbel root: division of the visits, draws, choice. `reference.rs` has a second implementation of the whole; the tests here check
//! for errors that other implementations had.

use std::collections::BTreeMap;

use games::{Game, MoverValue, Outcome};

use super::{
    KEY, Shape, TreeGame,
    game::{answer, evaluate, gather, uniform},
    invariants::check,
};
use crate::{
    GameKey, Root, Search, Settings,
    tree::{ACTION, NEAR_PROOF, Step, virtual_losses},
};

fn settings(visits: u32) -> Settings {
    Settings {
        visits,
        root: Root::Gumbel,
        ..Settings::default()
    }
}

/// Returns the first tree of a series whose start has at least this many actions. Its games are long.
fn wide(actions: usize) -> TreeGame<2> {
    let tree = |seed| {
        TreeGame::of(&Shape {
            seed,
            branching: 40,
            depth: 40,
            ends: 0,
            again: 50,
        })
    };
    let count = |tree: &TreeGame<2>| tree.evaluation().0.len();
    (0..).map(tree).find(|tree| count(tree) >= actions).unwrap()
}

/// The counts sum up `get_sequence_of_considered_visits(actions, visits)` of mctx 0.0.71 (`_src/seq_halving.py`).
#[test]
fn visits_are_divided_as_by_mctx() {
    let cases: [(usize, u32, &[u32]); 10] = [
        (5, 1, &[1]),
        (2, 7, &[4, 3]),
        (3, 10, &[5, 4, 1]),
        (4, 50, &[19, 19, 6, 6]),
        (7, 16, &[5, 5, 2, 1, 1, 1, 1]),
        (7, 32, &[12, 12, 4, 1, 1, 1, 1]),
        (13, 100, &[33, 32, 13, 5, 5, 5, 1, 1, 1, 1, 1, 1, 1]),
        (16, 16, &[1; 16]),
        (16, 32, &[4, 4, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]),
        (20, 64, &[15, 15, 7, 7, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1]),
    ];
    for (actions, visits, expected) in cases {
        let start = wide(actions);
        let mut search = Search::new(start, settings(visits), KEY);
        let allowed: Vec<u32> = search.decision().actions[..actions].to_vec();
        search.restrict_root(&allowed);
        search
            .decide(|request, priors| {
                uniform(request, priors);
                MoverValue::new(0.25)
            })
            .unwrap();
        let mut found: Vec<u32> = search.decision().visits;
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.retain(|&visits| visits > 0);
        assert_eq!(found, expected, "{actions} actions, {visits} visits");
    }
}

/// The largest of `g + ln P` is a draw from `P` (the Gumbel-max trick). Noise of another scale, Dirichlet noise, or draws that
/// belong to other actions would change the shares.
#[test]
fn with_one_visit_actions_are_played_as_often_as_the_policy_says() {
    let start = wide(6);
    let (priors, _) = start.evaluation();
    let one = Settings {
        noise_fraction: 1.0,
        noise_total_alpha: 0.5,
        ..settings(1)
    };
    let rounds = 6_000u32;
    let mut played: BTreeMap<u32, u32> = BTreeMap::new();
    let mut actions = Vec::new();
    for game in 0..rounds {
        let key = GameKey {
            game: game.into(),
            ..KEY
        };
        let mut search = Search::new(start.clone(), one.clone(), key);
        search.decide(evaluate).unwrap();
        let decision = search.decision();
        assert_eq!(decision.searched_priors, decision.priors);
        *played.entry(search.choose(1.0).unwrap()).or_default() += 1;
        actions = decision.actions;
    }
    for (action, prior) in actions.iter().zip(priors) {
        let (prior, rounds) = (f64::from(prior), f64::from(rounds));
        let found = f64::from(played.get(action).copied().unwrap_or_default());
        let deviation = (rounds * prior * (1.0 - prior)).sqrt();
        assert!(
            (found - rounds * prior).abs() < 4.5 * deviation,
            "action {action}: {found} of {rounds}, {prior} expected"
        );
    }
}

#[test]
fn a_whole_sweep_is_in_flight_without_virtual_losses() {
    for leaves in [1, 4, 64] {
        let settings = Settings {
            leaves,
            ..settings(32)
        };
        let mut search = Search::new(wide(20), settings, KEY);
        let mut sizes = Vec::new();
        while !search.is_decided() {
            let answers = gather(&mut search);
            sizes.push(answers.len());
            let words = search.tree.column(search.root, ACTION);
            assert!(words.iter().all(|&word| virtual_losses(word) == 0));
            assert_eq!(search.tree.visit_sum(search.root), search.visits_done());
            answer(&mut search, answers);
            check(&search);
        }
        assert_eq!(sizes, [1, 16, 8, 4, 4]);
    }
}

/// Twenty actions, of which the sixteen candidates are marked as lost after the first sweep.
#[test]
fn halving_begins_anew_if_all_candidates_are_refuted() {
    let settings = Settings {
        solver: true,
        ..settings(40)
    };
    let mut search = Search::new(wide(20), settings, KEY);
    let twenty: Vec<u32> = search.decision().actions[..20].to_vec();
    search.restrict_root(&twenty);
    while search.visits_done() < 16 {
        let mut answers = Vec::new();
        search.gather(|request| {
            let mut priors = Vec::new();
            let value = uniform(&request, &mut priors);
            answers.push((request.id, priors, value));
        });
        answer(&mut search, answers);
    }
    let first = search.root_visits().to_vec();
    let lost = Outcome::Won(search.state().to_move().other());
    for edge in (0..20).filter(|&edge| first[edge as usize] > 0) {
        let step = Step {
            node: search.root,
            edge,
        };
        let child = search.tree.child(step).unwrap();
        search.tree.set_proof(child, lost);
    }
    search.tree.words[search.root.0 as usize] |= NEAR_PROOF;
    search.decide(uniform).unwrap();
    let mut others: Vec<u32> = (search.root_visits().iter().zip(&first))
        .filter(|&(_, &first)| first == 0)
        .map(|(&visits, _)| visits)
        .collect();
    others.sort_unstable();
    assert_eq!(others, [3, 3, 9, 9]);
    let chosen = search.choose(1.0).unwrap();
    let at = twenty.iter().position(|&action| action == chosen).unwrap();
    assert_eq!((first[at], search.root_visits()[at]), (0, 9));
}
