//! Draws by repetition within a turn that the game knows, compared with trying every lift and placement.

use std::collections::HashSet;

use games::{
    Game,
    paco_sako::{PacoSako, Rules},
};

use super::data::{legal, play};
use crate::shared::drawer;

/// Returns the states after one lift and one placement, or after one placement if a piece is in the hand.
fn simple_turns(state: &PacoSako) -> Vec<PacoSako> {
    let next = |state: &PacoSako| -> Vec<PacoSako> {
        let after = |action| {
            let mut next = state.clone();
            play(&mut next, action);
            next
        };
        legal(state).into_iter().map(after).collect()
    };
    if state.in_hand().is_some() {
        return next(state);
    }
    next(state).iter().flat_map(next).collect()
}

fn can_draw(state: &PacoSako) -> bool {
    simple_turns(state)
        .iter()
        .any(|end| end.ending() == Some("repetition"))
}

/// Plays games whose players like to go back, and compares every state, those with a piece in the hand included.
#[test]
fn a_draw_by_repetition_is_known_exactly_where_one_lift_and_one_placement_reach_it() {
    let (mut draws, mut others, mut below) = (0, 0, drawer(1));
    for fen in [
        "4k3/8/8/8/3d4/8/8/4K3 w 0 - - -",
        "2rkN1nr/1bpp1p1p/p6b/1a2P1p1/6d1/3P1FPB/PP2t2P/R1B1K2R w 15 AH - -",
        "4w2r/tjk4p/3N4/p3an2/1p1T1a2/bP1ea3/PR5P/4K1vR w 4 H - -",
    ] {
        for limit in [2, 3, 3, 3, 0] {
            let rules = Rules {
                draw_after_n_repetitions: limit,
                ..Rules::default()
            };
            let mut state = PacoSako::start(&rules, Some(fen)).unwrap();
            let mut seen = HashSet::new();
            while state.outcome().is_none() {
                let expected = can_draw(&state);
                assert_eq!(state.can_draw(), expected, "{}", state.position());
                for action in legal(&state) {
                    let mut lifted = state.clone();
                    play(&mut lifted, action);
                    if lifted.in_hand().is_some() {
                        assert_eq!(lifted.can_draw(), can_draw(&lifted), "{}", lifted.position());
                    }
                }
                draws += u32::from(expected);
                others += u32::from(!expected);
                let board = |state: &PacoSako| state.position().split(' ').next().map(str::to_owned);
                seen.insert(board(&state));
                let is_over =
                    |next: &&PacoSako| next.to_move() != state.to_move() || next.outcome().is_some();
                let ends = simple_turns(&state);
                let ends: Vec<&PacoSako> = ends.iter().filter(is_over).collect();
                if ends.is_empty() {
                    break;
                }
                let known: Vec<&&PacoSako> = ends.iter().filter(|end| seen.contains(&board(end))).collect();
                state = if !known.is_empty() && below(2) == 0 {
                    (*known[below(known.len())]).clone()
                } else {
                    ends[below(ends.len())].clone()
                };
            }
        }
    }
    assert!(
        draws > 15 && others > 100,
        "{draws} turns with a draw, {others} without"
    );
}
