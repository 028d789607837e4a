//! Connect Four, compared with a second implementation: columns of discs, and a search of every line.

use games::{Game, Outcome, Player, StartError, connect_four::ConnectFour};
use proptest::prelude::*;

use crate::shared::{choices, legal, play};

/// Discs of each column, from left to right, each from the bottom up.
#[derive(Default)]
struct Columns([Vec<Player>; 7]);

impl Columns {
    fn at(&self, column: i32, row: i32) -> Option<Player> {
        let column = self.0.get(usize::try_from(column).ok()?)?;
        column.get(usize::try_from(row).ok()?).copied()
    }

    fn winner(&self) -> Option<Player> {
        for column in 0..7 {
            for row in 0..6 {
                for (right, up) in [(1, 0), (0, 1), (1, 1), (1, -1)] {
                    let line = [0, 1, 2, 3].map(|step| self.at(column + step * right, row + step * up));
                    if line[0].is_some() && line.iter().all(|&disc| disc == line[0]) {
                        return line[0];
                    }
                }
            }
        }
        None
    }

    fn open(&self) -> Vec<u32> {
        (0..7)
            .filter(|&column| self.0[column as usize].len() < 6)
            .collect()
    }

    fn outcome(&self) -> Option<Outcome> {
        let full = self.open().is_empty().then_some(Outcome::Draw);
        self.winner().map(Outcome::Won).or(full)
    }
}

fn agree(state: &ConnectFour, columns: &Columns) {
    let outcome = columns.outcome();
    assert_eq!(state.outcome(), outcome);
    let open = if outcome.is_some() { vec![] } else { columns.open() };
    assert_eq!(legal(state), open);
    let discs: usize = columns.0.iter().map(Vec::len).sum();
    assert_eq!(state.to_move().index(), discs % 2);
    for action in 0..9 {
        assert_eq!(state.clone().play(action).is_ok(), open.contains(&action));
    }
    let (own, other) = state.bitboards();
    for square in 0..64 {
        let seen = columns.at(square % 8, square / 8);
        assert_eq!(own >> square & 1 == 1, seen == Some(state.to_move()));
        assert_eq!(other >> square & 1 == 1, seen == Some(state.to_move().other()));
    }
}

proptest! {
    #[test]
    fn bitboards_agree_with_columns(choices in choices(43)) {
        let mut columns = Columns::default();
        let mut state = ConnectFour::EMPTY;
        play(&mut state, &choices, |state, action| {
            agree(state, &columns);
            columns.0[action as usize].push(state.to_move());
        });
        agree(&state, &columns);
        prop_assert_eq!(ConnectFour::start(&Default::default(), Some(&state.position())), Ok(state));
    }
}

#[test]
fn games_end_with_a_win_or_a_draw() {
    let mut state = ConnectFour::EMPTY;
    for column in [3, 0, 3, 0, 3, 0, 3] {
        state.play(column).unwrap();
    }
    assert_eq!(state.outcome(), Some(Outcome::Won(Player::First)));
    assert_eq!(state.position(), "7/7/3x3/o2x3/o2x3/o2x3 o");
    assert_eq!(state.play(1).unwrap_err().reason, "the game is over");

    let mut state = ConnectFour::EMPTY;
    for column in [
        0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 2, 3, 2, 3, 3, 2, 2, 3, 2, 3, 3, 2,
    ] {
        state.play(column).unwrap();
    }
    for column in [4, 5, 4, 5, 5, 4, 4, 5, 4, 5, 5, 4, 6, 6, 6, 6, 6, 6] {
        assert_eq!(state.outcome(), None);
        state.play(column).unwrap();
    }
    assert_eq!(state.outcome(), Some(Outcome::Draw));
}

#[test]
fn a_row_has_one_entry_for_every_cell() {
    let mut state = ConnectFour::EMPTY;
    state.play(3).unwrap();
    let mut row = Vec::new();
    state.write_row(Default::default(), Default::default(), &mut row);
    // The first player's disc belongs to the opponent of the player to act.
    let mut expected: Vec<u32> = (84..126).chain([0]).collect();
    expected[3] = 42 + 3;
    assert_eq!(row, expected);

    // Older versions wrote the same cells into planes of 8×8 squares.
    let padded = ConnectFour::encoding(&Default::default(), 0).unwrap();
    let mut older = Vec::new();
    state.write_row(padded, Default::default(), &mut older);
    let cell = |index: u32| index / 42 * 64 + index % 42 / 7 * 8 + index % 7;
    expected[..42].iter_mut().for_each(|index| *index = cell(*index));
    assert_eq!(older, expected);
}

#[test]
fn impossible_positions_are_refused() {
    let reason = |text: &str| match ConnectFour::start(&Default::default(), Some(text)) {
        Err(StartError { reason, .. }) => reason,
        Ok(state) => panic!("{text} was taken as {state:?}"),
    };
    assert!(reason("7/7/7/7/3x3/7 o").contains("floats"));
    assert!(reason("7/7/7/7/7/x6 x").contains("the other player moves"));
    assert!(reason("7/7/7/7/7/xx5 o").contains("as many discs"));
    assert!(reason("7/7/7/7/7/8 x").contains("is not x, o"));
    assert!(reason("7/7/7/7/7/71 x").contains("8 cells"));
    assert!(reason("7/7/7/7/7 x").contains("six rows"));
    assert!(reason("7/7/7/7/oooo3/xxxx3 o").contains("the other player moves"));
    assert!(reason("7/7/7/7/oooo3/xxxx3 x").contains("won already"));
}
