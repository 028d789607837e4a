//! The Connect Four solver, compared with minimax, with other sizes of its table, and with published scores.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use games::{
    Game, Notation, Outcome,
    connect_four::{ConnectFour, solver::Solver},
};
use proptest::prelude::*;

use crate::shared::{legal, play};

/// Returns the position after discs in these columns, 1 to 7.
fn after(columns: &str) -> ConnectFour {
    let mut state = ConnectFour::EMPTY;
    for column in columns.bytes() {
        state.play(u32::from(column - b'1')).unwrap();
    }
    state
}

/// Returns the score by minimax without pruning and tables.
fn minimax(state: &ConnectFour) -> i8 {
    match state.outcome() {
        Some(Outcome::Draw) => 0,
        // The last disc was the opponent's disc number (discs + 1) / 2.
        Some(_) => (state.discs() as i8 + 1) / 2 - 22,
        None => legal(state)
            .into_iter()
            .map(|action| {
                let mut next = *state;
                next.play(action).unwrap();
                -minimax(&next)
            })
            .max()
            .unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn late_positions_agree_with_minimax(choices in prop::collection::vec(any::<u16>(), 33..42)) {
        let mut state = ConnectFour::EMPTY;
        let mut late = Vec::new();
        play(&mut state, &choices, |state, _| {
            if state.discs() >= 33 {
                late.push(*state);
            }
        });
        late.push(state);
        let mut solver = Solver::new(1 << 16);
        for state in late.iter().filter(|state| state.discs() >= 33 || state.outcome().is_some()) {
            let expected = minimax(state);
            prop_assert_eq!(solver.score(state), expected);
            prop_assert_eq!(solver.winner(state), expected.signum());
        }
    }

    /// The smaller table has only a few slots.
    #[test]
    fn scores_do_not_depend_on_the_size_of_the_table(choices in prop::collection::vec(any::<u16>(), 22..36)) {
        let mut state = ConnectFour::EMPTY;
        play(&mut state, &choices, |_, _| {});
        let score = Solver::new(64).score(&state);
        prop_assert_eq!(Solver::new(1 << 20).score(&state), score);
        prop_assert_eq!(Solver::new(1 << 20).winner(&state), score.signum());
        let mut solver = Solver::new(1 << 20);
        let best = solver.scores(&state).into_iter().flatten().max();
        prop_assert_eq!(best.unwrap_or(score), score);
        let winners = solver.winners(&state).into_iter().flatten().max();
        prop_assert_eq!(winners.unwrap_or(score.signum()), score.signum());
    }
}

/// Lines and scores are from the test sets that Pascal Pons published with his solver.
#[test]
fn published_scores_agree() {
    let mut solver = Solver::new(1 << 20);
    for (line, score) in [
        ("2252576253462244111563365343671351441", -1),
        ("7422341735647741166133573473242566", 1),
        ("23163416124767223154467471272416755633", 0),
    ] {
        assert_eq!(solver.score(&after(line)), score, "{line}");
    }
}

/// The position is ten plies into the line d1 d2 d3 d4 d5 b1 …, in which the first player wins with the very last disc by
/// the published solution of the game.
#[test]
fn the_first_player_wins_the_main_line_at_the_end() {
    let mut solver = Solver::new(16 << 20);
    assert_eq!(solver.score(&after("4444422224")), 1);
}

/// By the published solution, the first player wins by beginning in the centre.
#[test]
#[ignore = "takes some minutes"]
fn the_first_disc_in_the_centre_wins() {
    assert_eq!(Solver::new(64 << 20).winner(&after("4")), -1);
}

/// The empty board takes minutes, so that it is never solved between two looks at the flag.
#[test]
fn a_stopped_solver_says_nothing_and_learns_nothing_wrong() {
    let stop = Arc::new(AtomicBool::new(true));
    let mut solver = Solver::new(1 << 16);
    assert_eq!(
        solver.unless(&stop, |solver| solver.winner(&ConnectFour::EMPTY)),
        None
    );
    stop.store(false, Ordering::Relaxed);
    for columns in ["444444111122", "4444441552233111"] {
        let state = after(columns);
        let fresh = Solver::new(1 << 16).winner(&state);
        assert_eq!(solver.unless(&stop, |solver| solver.winner(&state)), Some(fresh));
        assert_eq!(solver.winner(&state), fresh);
        let mut columns = [None; 7];
        state.solve_actions(&stop, &mut |column, value| columns[column as usize] = Some(value));
        assert_eq!(columns, solver.winners(&state));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    /// The game knows exactly the wins with the next disc and the losses with the one after it.
    #[test]
    fn known_outcomes_are_wins_and_losses_of_one_and_two_discs(choices in prop::collection::vec(any::<u16>(), 10..42)) {
        let mut state = ConnectFour::EMPTY;
        let mut late = Vec::new();
        play(&mut state, &choices, |state, _| late.push(*state));
        let mut solver = Solver::new(1 << 20);
        for state in late.into_iter().filter(|state| state.discs() >= 14) {
            let score = solver.score(&state);
            let discs = state.discs() as i8;
            // Scores of a win with the next disc, and of a loss with the one after it.
            let (win, loss) = (22 - (discs + 2) / 2, (discs + 3) / 2 - 22);
            let expected = match score {
                _ if score == win => Some((state.to_move(), 1)),
                _ if score == loss => Some((state.to_move().other(), 2)),
                _ => None,
            };
            let known = state.known().map(|known| (known.outcome, known.actions));
            let expected = expected.map(|(winner, actions)| (Outcome::Won(winner), actions));
            prop_assert_eq!(known, expected, "{}", state.position());
        }
    }
}
