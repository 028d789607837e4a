//! Proofs in two-player games, compared with trying every action and with the solver of Connect Four.

use games::{
    Game, MoverValue, Outcome,
    connect_four::{ConnectFour, solver::Solver},
    paco_sako::{PacoSako, Rules},
};

use super::{
    KEY, TreeGame,
    game::{evaluate, legal, small, spread, uniform},
    invariants::check,
};
use crate::{
    Reuse, Search, Settings,
    tree::{NodeId, Step},
};

fn settings(visits: u32) -> Settings {
    Settings {
        visits,
        solver: true,
        stop_when_solved: true,
        ..Settings::default()
    }
}

/// Every small tree is proven to the end, each proof in it is right, and play keeps the outcome.
#[test]
fn small_trees_are_proven_and_played_to_their_outcome() {
    let mut early = 0;
    for seed in 0..300 {
        let settings = Settings {
            leaves: 1 + seed as u32 % 7,
            reuse: [Reuse::Gray, Reuse::Keep, Reuse::Drop][seed as usize % 3],
            noise_fraction: [0.0, 0.25][seed as usize / 2 % 2],
            ..settings(20_000)
        };
        let start = TreeGame::<2>::of(&small(seed));
        let expected = start.solved().outcome;
        let mut search = Search::new(start, settings, KEY);
        loop {
            search.decide(evaluate).unwrap();
            check(&search);
            assert_eq!(
                search.state().solved().outcome,
                expected,
                "seed {seed}: the outcome was given away"
            );
            let decision = search.decision();
            assert_eq!(decision.value, expected.value().seen_by(decision.mover));
            let Some(action) = search.choose(1.0) else { break };
            assert_eq!(Some(action), decision.solution);
            early += u32::from(search.visits_done() < 20_000);
            search.advance(action).unwrap();
        }
    }
    assert!(early > 900, "{early} decisions ended early");
}

/// A state whose outcome the game knows is decided without an evaluation, by the shortest win or the longest defence.
#[test]
fn a_known_state_is_decided_at_once() {
    let (mut wins, mut losses) = (0, 0);
    for seed in (0..400).step_by(2) {
        let mut state = TreeGame::<2>::of(&small(seed));
        while state.known().is_none() && state.outcome().is_none() {
            let legal = legal(&state);
            let Some(&action) = legal.get(spread(seed) as usize % legal.len().max(1)) else {
                break;
            };
            state.play_legal(action);
        }
        let Some(known) = state.known() else { continue };
        let mut search = Search::new(state.clone(), settings(100), KEY);
        assert!(search.is_decided());
        assert_eq!(
            search.decision().value,
            known.outcome.value().seen_by(state.mover)
        );
        let action = search.choose(1.0).unwrap();
        assert_eq!(search.decision().solution, Some(action));
        search.advance(action).unwrap();
        assert_eq!(search.counters().evaluations, 0);
        let after = search.state().solved();
        assert_eq!(after.outcome, known.outcome);
        if let Outcome::Won(winner) = known.outcome {
            assert_eq!(1 + after.actions, known.actions, "seed {seed}");
            wins += u32::from(winner == state.mover);
            losses += u32::from(winner != state.mover);
        }
    }
    assert!(wins > 30 && losses > 10, "{wins} wins, {losses} losses");
}

fn connect_four(seed: u64, discs: u32) -> Option<ConnectFour> {
    let mut state = ConnectFour::EMPTY;
    for ply in 0..discs {
        let legal = legal(&state);
        let drawn = spread(seed.wrapping_mul(1000).wrapping_add(u64::from(ply)));
        state
            .play(*legal.get(drawn as usize % legal.len().max(1))?)
            .ok()?;
    }
    state.outcome().is_none().then_some(state)
}

/// Compares the proofs of all nodes below `node` with the solver. Returns their number.
fn compare_proofs(
    search: &Search<ConnectFour>,
    node: NodeId,
    state: &ConnectFour,
    solver: &mut Solver,
) -> u32 {
    let proof = search.tree.proof(node);
    if let Some(outcome) = proof {
        let winner = f32::from(solver.winner(state));
        assert_eq!(
            outcome.value().seen_by(state.to_move()).get(),
            winner,
            "{}",
            state.position()
        );
    }
    let mut count = u32::from(proof.is_some());
    for edge in 0..search.tree.edges(node) as u32 {
        let step = Step { node, edge };
        if let Some(child) = search.tree.child(step) {
            let mut next = *state;
            next.play(search.tree.action(step)).unwrap();
            count += compare_proofs(search, child, &next, solver);
        }
    }
    count
}

#[test]
fn every_proof_in_connect_four_agrees_with_the_solver() {
    let mut solver = Solver::new(4 << 20);
    let (mut proofs, mut roots) = (0, 0);
    let starts = (0..300).filter_map(|seed| connect_four(seed, 20 + seed as u32 % 12));
    for (number, start) in starts.enumerate() {
        let settings = Settings {
            leaves: [1, 4][number % 2],
            ..settings(800)
        };
        let mut search = Search::new(start, settings, KEY);
        search.decide(uniform).unwrap();
        proofs += compare_proofs(&search, search.root, search.state(), &mut solver);
        if search.is_solved() {
            roots += 1;
            // Neither side gives the outcome away when it plays the solution.
            let before = solver.winner(search.state());
            search.advance(search.choose(1.0).unwrap()).unwrap();
            assert_eq!(solver.winner(search.state()), -before);
        }
    }
    assert!(
        proofs > 2_000 && roots > 50,
        "{proofs} proofs, {roots} of decisions"
    );
}

/// Plays all sequences of one turn. Returns true if one of them wins.
fn wins_in_a_turn(state: &PacoSako) -> bool {
    let mover = state.to_move();
    let mut open = vec![state.clone()];
    let mut seen = std::collections::HashSet::new();
    while let Some(state) = open.pop() {
        for action in legal(&state) {
            let mut next = state.clone();
            next.play_legal(action);
            if next.outcome() == Some(Outcome::Won(mover)) {
                return true;
            }
            let goes_on = next.outcome().is_none() && next.to_move() == mover;
            if goes_on && seen.insert(format!("{}{:?}", next.position(), next.required_action())) {
                open.push(next);
            }
        }
    }
    false
}

/// Wins of one turn take three to five actions of one player here.
#[test]
fn paco_sako_wins_of_several_actions_are_proven_for_their_player() {
    for fen in [
        "rnbqkbnr/pppppppp/5N2/8/8/8/PPPPPPPP/RNBQKB1R w 0 AHah - -",
        "2k1r3/ppc2ppp/3i4/3p1b2/PEtPpB1P/3L1NPB/2P1DP2/5K2 w 0 AHah - -",
        "rn2k1nr/pppppppp/4E2q/8/2E5/8/PP1PKPPP/RNBQ1BNR b 0 AHah - -",
        "rnbqk2r/pp1p1B1e/1f2c3/3PN3/3w1a2/3P1oa1/PP5P/2KR4 w 0 AHah - -",
        "2btk2r/1pe2ppp/1P2p3/1dC5/8/P1E3a1/2sP1PP1/3LK1NR w 0 AHah - -",
    ] {
        let start = PacoSako::start(&Rules::default(), Some(fen)).unwrap();
        assert!(wins_in_a_turn(&start), "{fen}");
        let mover = start.to_move();
        let mut search = Search::new(start, settings(100), KEY);
        let mut actions = 0;
        while search.state().outcome().is_none() {
            search.decide(uniform).unwrap();
            assert!(search.is_solved(), "{fen}");
            assert_eq!(search.decision().value, MoverValue::new(1.0));
            assert_eq!(search.state().to_move(), mover, "the turn was given away");
            search.advance(search.choose(1.0).unwrap()).unwrap();
            actions += 1;
        }
        assert_eq!(search.state().outcome(), Some(Outcome::Won(mover)));
        assert!(actions >= 2);
        assert_eq!(search.counters().evaluations, 0, "{fen}");
    }
}
