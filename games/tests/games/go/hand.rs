//! Positions set by hand: ko, superko, suicide, scores with seki and dame, texts, rows.

use games::{
    Game, Notation, Outcome, Player, Symmetry,
    go::{Go, Rules, Superko},
    scene::Squares,
};

use super::{area, plain, play, set_up};

const KO: [&str; 4] = [".XO.", "XO.O", ".XO.", "...."];

#[test]
fn a_ko_is_taken_back_after_a_move_elsewhere() {
    let mut state = set_up(plain(4), &KO, 'X').unwrap();
    play(&mut state, "c3 !b3 d1 a1 b3 !c3");
    assert!(
        state
            .remark()
            .starts_with("Captured stones: 1 by Black, 1 by White.")
    );
}

/// White's first stone threatens nothing; Black takes two stones with one, and White takes that one.
const SENT: [&str; 4] = ["....", "....", "XXO.", ".O.O"];

#[test]
fn two_stones_sent_and_one_returned_recreate_the_stones_but_not_the_situation() {
    let mut state = set_up(plain(4), &SENT, 'O').unwrap();
    play(&mut state, "a1 c1 !b1");
    let rules = Rules {
        superko: Superko::Situational,
        ..plain(4)
    };
    let mut state = set_up(rules, &SENT, 'O').unwrap();
    play(&mut state, "a1 c1 b1");
}

/// A stone that captures nothing recreates a position: the history begins with both white stones on the board.
#[test]
fn superko_holds_for_stones_that_capture_nothing() {
    let ranks = ["....", "....", "XXO.", "OO.O"];
    for superko in [Superko::Positional, Superko::Situational] {
        let mut state = set_up(Rules { superko, ..plain(4) }, &ranks, 'X').unwrap();
        play(&mut state, "c1 b1 pass !a1");
        // The text of the position keeps the prohibition.
        assert_eq!(state.position(), "-O-OXXO--------- O 1 a1");
        let mut again = Go::start(&Rules { superko, ..plain(4) }, Some(&state.position())).unwrap();
        play(&mut again, "!a1 d4 d3 a1");
    }
}

#[test]
fn the_last_move_of_a_cycle_of_three_kos_is_illegal() {
    let ranks = [
        ".XO......",
        "XO.O.....",
        ".XO......",
        ".XO......",
        "XO.O.....",
        ".XO......",
        ".XO......",
        "X.XO.....",
        ".XO......",
    ];
    for superko in [Superko::Positional, Superko::Situational] {
        let mut state = set_up(Rules { superko, ..plain(9) }, &ranks, 'X').unwrap();
        play(&mut state, "c8 b2 c5 b8 c2 !b5 pass");
        assert_eq!(state.outcome(), None);
    }
}

#[test]
fn suicide_is_a_rule() {
    let ranks = [".XO.", "XXO.", "OOO.", "...."];
    play(&mut set_up(plain(4), &ranks, 'X').unwrap(), "!a4");
    let suicide = Rules {
        suicide: true,
        ..plain(4)
    };
    let mut state = set_up(suicide, &ranks, 'X').unwrap();
    play(&mut state, "a4");
    assert_eq!(state.position(), "----OOO---O---O- O 0 -");
    // One stone that removes itself would pass.
    let ranks = ["...", "OO.", ".O."];
    for superko in [Superko::Positional, Superko::Situational] {
        let rules = Rules {
            superko,
            suicide: true,
            ..plain(3)
        };
        play(&mut set_up(rules, &ranks, 'X').unwrap(), "!a1");
    }
}

#[test]
fn points_between_both_players_count_for_nobody() {
    let ranks = [".XO.O", "XXOOO", "OOXXX", "O.X.X", "O.XXX"];
    let mut state = set_up(plain(5), &ranks, 'X').unwrap();
    assert_eq!(area(&state), 13 - 10);
    play(&mut state, "pass pass");
    let territory = state.territory().unwrap();
    assert_eq!(territory.score, 3.0);
    // b1 and b2 are between both players, d2 is Black's.
    assert_eq!(
        (territory.owners[1], territory.owners[6], territory.owners[8]),
        (0, 0, 1)
    );
    assert_eq!(
        state.result_text().unwrap(),
        "Black has won by 3 points (two passes)."
    );
}

#[test]
fn komi_decides_and_a_whole_komi_can_draw() {
    for (komi, outcome) in [
        (8.5, Outcome::Won(Player::First)),
        (9.0, Outcome::Draw),
        (9.5, Outcome::Won(Player::Second)),
        (-3.5, Outcome::Won(Player::First)),
    ] {
        let mut state = Go::start(&Rules { komi, ..plain(3) }, None).unwrap();
        play(&mut state, "b2 pass");
        assert_eq!(
            state.known().map(|known| known.outcome),
            (komi < 9.0).then_some(outcome)
        );
        assert_eq!(state.can_draw(), komi == 9.0);
        play(&mut state, "pass");
        assert_eq!(
            (state.outcome(), state.ending()),
            (Some(outcome), Some("two-passes"))
        );
        assert_eq!(state.territory().unwrap().score, 9.0 - komi);
    }
}

#[test]
fn impossible_rules_and_positions_are_refused() {
    let reason = |rules: Rules, text: Option<&str>| Go::start(&rules, text).unwrap_err().reason;
    let rules = |size, komi| Rules {
        size,
        komi,
        ..Rules::default()
    };
    assert_eq!(reason(rules(20, 0.0), None), "`size` is 20; 2 to 19 are possible");
    for komi in [7.25, 400.5, f32::NAN, f32::INFINITY] {
        assert!(reason(rules(9, komi), None).starts_with("`komi` is"), "{komi}");
        assert!(Go::encoding(&rules(9, komi), 0).is_err());
    }
    for (position, expected) in [
        ("-------------------------", "a position is"),
        ("--------- X 0 - -", "a position is"),
        ("---------------- X 0 -", "the board has 16 squares, not 9"),
        ("----Z---- X 0 -", "'Z' on square 4 is not X, O or -"),
        ("XO-O----- X 0 -", "a chain has no liberty"),
        ("--------- Z 0 -", "the player to move is X or O, not \"Z\""),
        ("--------- X 3 -", "the passes in a row are 0, 1 or 2"),
        ("--------- X 0 i1", "\"i1\" is not a point"),
        ("X-------- X 0 a1", "a1 cannot be forbidden by superko"),
    ] {
        let found = reason(plain(3), Some(position));
        assert!(found.starts_with(expected), "{position}: {found}");
    }
}

/// The row of a small position, entry by entry.
#[test]
fn a_row_tells_liberties_prohibitions_moves_and_komi() {
    let rules = Rules {
        komi: 7.5,
        ..plain(4)
    };
    let mut state = set_up(rules, &KO, 'X').unwrap();
    play(&mut state, "c3");
    let layout = Go::layout(Go::encoding(&rules, 0).unwrap());
    let stack = layout.stack().unwrap();
    let (mut row, mut planes) = (Vec::new(), vec![0.0; stack.tensor_len()]);
    state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
    assert_eq!(row.len(), 16 + 5 + 3);
    stack.expand(&row, &mut planes).unwrap();
    let value =
        |plane: usize, name: &str| planes[16 * plane + Squares::new(4, 4).read(name).unwrap() as usize];
    // White is to move, and has a stone with one liberty. Black's stone on c3 has one, and b3 is forbidden.
    assert_eq!(
        [value(0, "c4"), value(1, "d3"), value(1, "c2"), value(4, "c3")],
        [1.0; 4]
    );
    assert_eq!([value(9, "b3"), value(8, "d4"), value(10, "c3")], [1.0; 3]);
    assert_eq!(
        [value(0, "d3"), value(8, "b3"), value(11, "c3"), value(15, "a1")],
        [0.0; 4]
    );
    assert_eq!(
        (value(16, "a1"), value(17, "a1"), value(18, "a1")),
        (0.5, 0.0, 1.0)
    );
    play(&mut state, "pass");
    row.clear();
    state.write_row(Default::default(), Symmetry::IDENTITY, &mut row);
    assert_eq!(
        row[16..],
        [row[0], 16 * 11 + 10, row[0], row[0], row[0], 1, 0, 15]
    );
}
