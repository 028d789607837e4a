//! Gomoku: the usual board stays what the shipped network and older records have; other sizes. `perft` counts by brute force.

use games::{
    Game, Outcome, Player, RowLayout, Symmetry,
    gomoku::{Gomoku, Rules},
};

#[test]
fn the_usual_board_is_that_of_the_shipped_network() {
    let manifest = include_str!("../../../../networks/gomoku/manifest.json");
    let manifest: serde_json::Value = serde_json::from_str(manifest).unwrap();
    let layout: RowLayout = serde_json::from_value(manifest["layout"].clone()).unwrap();
    // Rules of older versions have no size.
    let rules: Rules = serde_json::from_str("{}").unwrap();
    assert_eq!(Gomoku::layout(Gomoku::encoding(&rules, 0).unwrap()), layout);

    let mut state = Gomoku::start(&rules, None).unwrap();
    for action in [27, 36, 0] {
        state.play(action).unwrap();
    }
    let position = format!("X{}X{}O{} O", "-".repeat(26), "-".repeat(8), "-".repeat(27));
    assert_eq!(state.position(), position);
    // White is to move, so e5 is the own stone. A quarter turn takes a1 to h1, d4 to e4, and e5 to d5.
    for (symmetry, own, others) in [(0, 36, [0, 27]), (1, 35, [7, 28])] {
        let mut row = Vec::new();
        state.write_row(rules, Symmetry(symmetry), &mut row);
        let plane = |square| match square {
            square if square == own => 0,
            square if others.contains(&square) => 1,
            _ => 2,
        };
        let expected: Vec<u32> = (0..64)
            .map(|square| 64 * plane(square) + square)
            .chain([0])
            .collect();
        assert_eq!(row, expected);
    }
}

#[test]
fn five_win_on_a_large_board_and_do_not_run_over_its_edge() {
    let rules = Rules { size: 15 };
    let mut state = Gomoku::start(&rules, None).unwrap();
    // The first five black stones are on m1 to o1, a2 and b2: neighbours by number only.
    for (black, white) in [(12, 100), (13, 120), (14, 140), (15, 160)] {
        state.play(black).unwrap();
        state.play(white).unwrap();
    }
    state.play(16).unwrap();
    assert_eq!(state.outcome(), None);
    assert_eq!(state.known(), None);
    for action in [200, 11, 201, 10] {
        state.play(action).unwrap();
    }
    assert_eq!(state.outcome(), Some(Outcome::Won(Player::First)));
    for size in [4, 20] {
        assert!(Gomoku::start(&Rules { size }, None).is_err());
    }
    assert!(Gomoku::start(&rules, Some(&format!("{} X", "-".repeat(64)))).is_err());
}
