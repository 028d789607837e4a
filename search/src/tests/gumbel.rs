//! The Gumbel root: division of the visits, draws, choice. `reference.rs` has a second implementation of the whole; the tests here check
//! for errors that other implementations had.

use std::collections::{BTreeMap, HashSet};

use games::{Game, MoverValue, Outcome, connect_four::ConnectFour};

use super::{
    KEY, Shape, TreeGame,
    game::{answer, evaluate, gather, small},
    invariants::check,
};
use crate::{
    Decision, Draws, GameKey, LeafRequest, Purpose, Reuse, Root, Search, Settings,
    completed_q::Results,
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

fn uniform<G: Game>(request: &LeafRequest<'_, G>, priors: &mut Vec<f32>) -> MoverValue {
    priors.extend(request.legal.iter().map(|_| 1.0 / request.legal.len() as f32));
    MoverValue::new(0.0)
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
                let count = request.legal.len();
                priors.extend((0..count).map(|_| 1.0 / count as f32));
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

/// With draws that stay the same through a game or a run, every decision among equal actions would have the same result.
#[test]
fn each_decision_has_its_own_draws() {
    let mut firsts = HashSet::new();
    for game in 0..60 {
        let mut search = Search::new(ConnectFour::EMPTY, settings(1), GameKey { game, ..KEY });
        let mut columns = Vec::new();
        for _ in 0..5 {
            search.decide(uniform).unwrap();
            let action = search.choose(1.0).unwrap();
            columns.push(action);
            search.advance(action).unwrap();
        }
        assert!(columns.iter().any(|&column| column != columns[0]), "{columns:?}");
        firsts.insert(columns[0]);
    }
    assert_eq!(firsts.len(), 7);
}

/// Returns `g + ln P + s(q)` of each action.
fn scores(decision: &Decision, settings: &Settings, key: GameKey) -> Vec<f64> {
    let mut draws = Draws::new(key, 0, Purpose::Gumbel);
    let numbers = |numbers: &[f32]| numbers.iter().copied().map(f64::from).collect::<Vec<f64>>();
    let values: Vec<f64> = decision.values.iter().map(|value| value.get().into()).collect();
    let logits = settings.completed_q().logits(&Results {
        priors: &numbers(&decision.priors),
        visits: &decision.visits,
        values: &values,
        evaluation: decision.evaluation.get().into(),
    });
    logits.into_iter().map(|logit| logit + draws.gumbel()).collect()
}

#[test]
fn the_choice_is_the_best_score_among_the_most_visited() {
    let start = wide(20);
    let (mut not_the_first, mut not_the_best_of_all, mut not_the_best_value) = (0, 0, 0);
    for game in 0..200 {
        let key = GameKey { game, ..KEY };
        let settings = settings([16, 24, 32, 50][game as usize % 4]);
        let mut search = Search::new(start.clone(), settings.clone(), key);
        search.decide(evaluate).unwrap();
        let decision = search.decision();
        let scores = scores(&decision, &settings, key);
        let action = search.choose(1.0).unwrap();
        let chosen = decision
            .actions
            .iter()
            .position(|&other| other == action)
            .unwrap();
        let most = *decision.visits.iter().max().unwrap();
        let candidates: Vec<usize> = (0..scores.len())
            .filter(|&at| decision.visits[at] == most)
            .collect();
        assert!(candidates.contains(&chosen));
        assert!(candidates.iter().all(|&at| scores[at] <= scores[chosen]));
        assert_eq!(search.principal_variation(None)[0], action);
        let value = |at: usize| decision.values[at].get();
        not_the_first += u32::from(candidates[0] != chosen);
        not_the_best_of_all += u32::from(scores.iter().any(|&score| score > scores[chosen]));
        not_the_best_value += u32::from(candidates.iter().any(|&at| value(at) > value(chosen)));
    }
    // The cases that tell the rule from others do occur.
    assert!(
        not_the_first > 20 && not_the_best_value > 20,
        "{not_the_first} {not_the_best_value}"
    );
    assert!(not_the_best_of_all > 5, "{not_the_best_of_all}");
}

/// Each candidate is visited once, so PUCT, which draws among ties, makes no choice below them.
#[test]
fn without_noise_nothing_is_drawn() {
    let start = wide(20);
    let decided = |noise_fraction, game| {
        let settings = Settings {
            noise_fraction,
            ..settings(16)
        };
        let mut search = Search::new(start.clone(), settings, GameKey { game, ..KEY });
        search.decide(evaluate).unwrap();
        (search.decision(), search.choose(1.0))
    };
    let first = decided(0.0, 0);
    assert!((1..30).all(|game| decided(0.0, game) == first));
    assert!((1..30).any(|game| decided(0.25, game).1 != first.1));
    // The candidates are the actions with the largest priors.
    let (priors, _) = start.evaluation();
    let visits = &first.0.visits;
    let least = (0..priors.len())
        .filter(|&at| visits[at] > 0)
        .map(|at| priors[at])
        .fold(1.0, f32::min);
    assert!((0..priors.len()).all(|at| visits[at] > 0 || priors[at] <= least));
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

#[test]
fn each_decision_counts_its_visits_from_zero() {
    let evaluations = |reuse| {
        let settings = Settings {
            reuse,
            ..settings(48)
        };
        let mut search = Search::new(wide(8), settings, KEY);
        for _ in 0..8 {
            assert!(search.decision().visits.iter().all(|&visits| visits == 0));
            search.decide(evaluate).unwrap();
            check(&search);
            let forced = search.decision().actions.len() == 1;
            let sum: u32 = search.decision().visits.iter().sum();
            assert_eq!(sum, if forced { 0 } else { 48 });
            let Some(action) = search.choose(1.0) else { break };
            search.advance(action).unwrap();
        }
        search.counters().evaluations
    };
    let [gray, keep, drop] = [Reuse::Gray, Reuse::Keep, Reuse::Drop].map(evaluations);
    assert!(gray < drop, "{gray} {drop}");
    // Visits continue below the kept nodes, and so reach new leaves.
    assert!(gray < keep, "{gray} {keep}");
}

#[test]
fn a_single_action_takes_no_visit() {
    let corridor = Shape {
        seed: 1,
        branching: 1,
        depth: 12,
        ends: 0,
        again: 40,
    };
    let mut search = Search::new(TreeGame::<2>::of(&corridor), settings(20), KEY);
    let mut plies = 0;
    loop {
        search.decide(evaluate).unwrap();
        let Some(action) = search.choose(1.0) else { break };
        let decision = search.decision();
        assert_eq!((decision.visits, search.visits_done()), (vec![0], 0));
        assert_eq!(decision.value, search.state().evaluation().1);
        search.advance(action).unwrap();
        plies += 1;
        assert_eq!(search.counters().evaluations, plies);
    }
    assert_eq!(plies, 12);
}

/// Returns the outcome that both sides can force from a state, for its player to act.
fn forced(state: &TreeGame<2>) -> MoverValue {
    state.solved().outcome.value().seen_by(state.mover)
}

/// Players act several times in a row in most of these trees, and games end within the search. A sign that follows the depth, or
/// values of earlier visits that come back, would give outcomes away.
#[test]
fn play_in_small_trees_keeps_the_outcome() {
    for seed in 0..120 {
        let solver = seed % 2 == 1;
        let settings = Settings {
            exploration: 1.0,
            first_play: crate::FirstPlay::Zero,
            solver,
            exact_leaves: seed % 4 == 1,
            stop_when_solved: seed % 8 > 3,
            noise_fraction: [0.0, 0.25][seed as usize / 2 % 2],
            reuse: [Reuse::Gray, Reuse::Keep, Reuse::Drop][seed as usize % 3],
            ..settings(6_000)
        };
        let mut search = Search::new(TreeGame::<2>::of(&small(seed)), settings, KEY);
        let expected = forced(search.state()).of_first(search.state().mover);
        loop {
            search.decide(uniform).unwrap();
            let Some(action) = search.choose(1.0) else { break };
            search.advance(action).unwrap();
            let now = forced(search.state()).of_first(search.state().mover);
            assert_eq!(now, expected, "seed {seed}: the outcome was given away");
        }
    }
}

/// Six of seven actions lose at once. The visits that proofs save go to the seventh.
#[test]
fn refuted_candidates_are_visited_no_more() {
    let mut state = ConnectFour::EMPTY;
    // The first player has three in a row in the left column, and the second player acts.
    for column in [0, 6, 0, 6, 0] {
        state.play(column).unwrap();
    }
    let settings = Settings {
        solver: true,
        exact_leaves: true,
        stop_when_solved: true,
        ..settings(32)
    };
    let mut search = Search::new(state, settings, KEY);
    search.decide(uniform).unwrap();
    let decision = search.decision();
    assert_eq!(search.choose(1.0), Some(0));
    assert_eq!(decision.actions[0], 0);
    assert!(
        decision.visits[1..].iter().all(|&visits| visits == 0),
        "{decision:?}"
    );
    assert!(decision.visits[0] >= 32 - 6, "{decision:?}");
    assert!(decision.refuted[1..].iter().all(|&refuted| refuted));
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
    let evaluate = |request: &LeafRequest<'_, TreeGame<2>>, priors: &mut Vec<f32>| {
        let value = evaluate(request, priors).get();
        priors.truncate(request.legal.len());
        let sum: f32 = priors.iter().sum();
        priors.iter_mut().for_each(|prior| *prior /= sum);
        MoverValue::new(value)
    };
    while search.visits_done() < 16 {
        let mut answers = Vec::new();
        search.gather(|request| {
            let mut priors = Vec::new();
            let value = evaluate(&request, &mut priors);
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
    search.decide(evaluate).unwrap();
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
