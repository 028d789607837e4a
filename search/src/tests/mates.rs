//! Wins by one action, or by one turn of several, on which the evaluator is blind: a search with proofs plays its own and prevents
//! the opponent's. What wins is found by playing the actions.

use games::{
    Action, Game, MoverValue, Notation, Outcome,
    gomoku::Gomoku,
    registry::{self, Visitor},
};

use super::{
    KEY,
    game::{legal, spread},
};
use crate::{Evaluation, LeafRequest, Root, Search, Settings};

/// Number of positions of each kind in each game.
const POSITIONS: u32 = 500;
/// Most actions of one player that are tried for a win: in Paco Ŝako a lift and a placement.
const TURN: u32 = 2;
/// Longest random game, in actions.
const LONGEST: u64 = 400;

/// Returns the legal actions by which the player to act wins in at most `actions` actions of its own turn.
fn winning<G: Game>(state: &G, actions: u32) -> Vec<Action> {
    let mut found = legal(state);
    found.retain(|&action| {
        let next = after(state, action);
        match next.outcome() {
            Some(outcome) => outcome == Outcome::Won(state.to_move()),
            None => {
                actions > 1 && next.to_move() == state.to_move() && !winning(&next, actions - 1).is_empty()
            }
        }
    });
    found
}

/// Returns the legal actions after which the game is lost, or the opponent wins in its next turn.
fn losing<G: Game>(state: &G) -> Vec<Action> {
    let opponent = state.to_move().other();
    let mut found = legal(state);
    found.retain(|&action| {
        let next = after(state, action);
        match next.outcome() {
            Some(outcome) => outcome == Outcome::Won(opponent),
            None => next.to_move() == opponent && !winning(&next, TURN).is_empty(),
        }
    });
    found
}

fn after<G: Game>(state: &G, action: Action) -> G {
    let mut next = state.clone();
    next.play_legal(action);
    next
}

/// Calls `look` with the states of random games, until it has returned true for as many of them as wanted.
fn each_state<G: Game>(mut look: impl FnMut(&G) -> bool) {
    let mut left = POSITIONS;
    for seed in 0.. {
        let mut state = G::start(&G::Rules::default(), None).unwrap();
        for ply in 0..LONGEST {
            let legal = legal(&state);
            if legal.is_empty() || left == 0 {
                break;
            }
            left -= u32::from(look(&state));
            state.play_legal(legal[spread(seed * LONGEST + ply) as usize % legal.len()]);
        }
        if left == 0 {
            return;
        }
    }
}

/// Decides with 50 visits and uniform evaluations, except that the `hidden` actions of the state have the prior 0.
fn decide<G: Game>(state: &G, root: Root, stop_when_solved: bool, hidden: &[Action]) -> Search<G> {
    let settings = Settings {
        visits: 50,
        root,
        solver: true,
        stop_when_solved,
        noise_fraction: 0.0,
        ..Settings::default()
    };
    let mut search = Search::new(state.clone(), settings, KEY);
    let mut is_first = true;
    let evaluate = |request: &LeafRequest<'_, G>, priors: &mut Vec<f32>| {
        let is_open = |action: &Action| !is_first || !hidden.contains(action);
        let open = request.legal.iter().filter(|action| is_open(action)).count();
        let prior = |action| f32::from(u8::from(is_open(action))) / open as f32;
        priors.extend(request.legal.iter().map(prior));
        is_first = false;
        MoverValue::new(0.0)
    };
    search.decide(evaluate).unwrap();
    search
}

const WAYS: [(Root, bool); 3] = [(Root::Puct, true), (Root::Puct, false), (Root::Gumbel, true)];

struct Wins;

impl Visitor for Wins {
    type Output = ();

    fn visit<G: Notation>(self) {
        each_state(|state: &G| {
            let wins = winning(state, TURN);
            if wins.is_empty() || wins.len() == legal(state).len() {
                return false;
            }
            for (root, stop) in WAYS {
                let search = decide(state, root, stop, &wins);
                let chosen = search.choose(0.0).unwrap();
                assert!(wins.contains(&chosen), "{}: {chosen}", state.position());
                assert_eq!(search.decision().value, MoverValue::new(1.0));
            }
            true
        });
    }
}

/// Open actions are hidden, so that all visits may go to those that lose before one of them is visited.
struct Threats;

impl Visitor for Threats {
    type Output = ();

    fn visit<G: Notation>(self) {
        each_state(|state: &G| {
            let mut open = legal(state);
            let losses = losing(state);
            open.retain(|action| !losses.contains(action));
            if losses.is_empty() || open.is_empty() || !winning(state, TURN).is_empty() {
                return false;
            }
            for (root, stop) in WAYS {
                let search = decide(state, root, stop, &open);
                let chosen = search.choose(0.0).unwrap();
                // The other actions may lose as well, only later.
                let is_lost = search.decision().value == MoverValue::new(-1.0);
                assert!(
                    is_lost || open.contains(&chosen),
                    "{}: {chosen}",
                    state.position()
                );
            }
            true
        });
    }
}

fn in_games_of_two<V: Visitor>(visitor: impl Fn() -> V) {
    for &name in registry::NAMES {
        if registry::find(name).unwrap().players == 2 {
            registry::visit(name, visitor()).unwrap();
        }
    }
}

#[test]
fn a_win_by_one_turn_is_never_overlooked() {
    in_games_of_two(|| Wins);
}

#[test]
fn no_search_walks_into_a_win_by_one_turn() {
    in_games_of_two(|| Threats);
}

/// Only one of 56 squares prevents five in a row, and it has the least score, so it is visited last.
#[test]
fn a_decision_whose_visits_are_all_lost_goes_on_until_an_open_action_has_a_visit() {
    let position = format!("OOOO----{}X-X-X-X- X", "-".repeat(48));
    let state = Gomoku::start(&Default::default(), Some(&position)).unwrap();
    for root in [Root::Puct, Root::Gumbel] {
        let search = decide(&state, root, true, &[4]);
        assert_eq!((search.choose(0.0), search.visits_done()), (Some(4), 56));
        let decision = search.decision();
        assert_eq!(decision.visits.iter().sum::<u32>(), 1);
        assert_eq!(
            decision.refuted.iter().filter(|&&is_refuted| is_refuted).count(),
            55
        );
    }
}

/// A search may be stopped at any time.
#[test]
fn a_stopped_decision_chooses_no_loss_while_another_action_is_open() {
    let position = format!("OOOO----{}X-X-X-X- X", "-".repeat(48));
    let state = Gomoku::start(&Default::default(), Some(&position)).unwrap();
    let settings = Settings {
        visits: 1,
        solver: true,
        noise_fraction: 0.0,
        ..Settings::default()
    };
    let mut search = Search::new(state, settings, KEY);
    let mut root = Vec::new();
    search.gather(|request| root.push((request.id, request.legal.len())));
    let mut priors = vec![0.0; root[0].1];
    *priors.last_mut().unwrap() = 1.0;
    let value = MoverValue::new(0.0);
    search
        .apply(
            root[0].0,
            Evaluation {
                priors: &priors,
                value,
            },
        )
        .unwrap();
    // All visits but the pending one are lost, and the open actions have the prior 0.
    search.gather(|_| ());
    assert!(search.is_waiting());
    let decision = search.decision();
    let chosen = search.choose(0.0);
    let at = decision.actions.iter().position(|&action| Some(action) == chosen);
    assert!(!decision.refuted[at.unwrap()], "{chosen:?}");
    let line = search.principal_variation(None);
    let at = decision.actions.iter().position(|action| *action == line[0]);
    assert!(!decision.refuted[at.unwrap()], "{line:?}");
}
