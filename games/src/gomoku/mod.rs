//! Gomoku on 8×8: five or more stones in a row win; Black begins on any square.
//!
//! | module | content |
//! |---|---|
//! | `state` | the state of a game |
//! | `row` | the index row, its layout and its symmetries |
//! | `text` | positions as text, checked when read |
//! | `people` | drawing and notation |
//!
//! Action `8·rank + file` (a1 = 0) puts a stone on an empty square. A full board without five in a row is a draw. All
//! eight symmetries of the square hold.

mod people;
mod row;
mod state;
mod text;

use serde::{Deserialize, Serialize};

use crate::{
    bits,
    game::{Action, Game, IllegalAction, Outcome, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

pub use state::Gomoku;
use state::has_five;

/// Gomoku has no variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {}

impl Game for Gomoku {
    type Rules = Rules;
    type Encoding = ();

    const NAME: &'static str = "gomoku";
    const PLAYERS: u8 = 2;
    const ACTIONS: u32 = 64;
    const SYMMETRIES: u8 = 8;

    fn start(_: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or(Ok(Self::EMPTY), text::read)
    }

    fn encoding(options: u32) -> Result<(), StartError> {
        crate::game::single_encoding(Self::NAME, options)
    }

    fn layout((): ()) -> RowLayout {
        row::layout()
    }

    fn to_move(&self) -> Player {
        self.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.is_lost {
            Some(Outcome::Won(self.to_move.other()))
        } else if self.empty_squares() == 0 {
            Some(Outcome::Draw)
        } else {
            None
        }
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        actions.extend(bits::squares(self.empty_squares()));
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        if action >= Self::ACTIONS {
            return fault("the square must be 0 to 63");
        }
        if self.outcome().is_some() {
            return fault("the game is over");
        }
        if self.empty_squares() >> action & 1 == 0 {
            return fault("a stone stands there");
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        // An action that is not legal changes nothing but the player to move.
        let stone = self.empty_squares() & 1 << (action & 63);
        let own = self.own | stone;
        *self = Self {
            own: self.other,
            other: own,
            to_move: self.to_move.other(),
            is_lost: self.is_lost || has_five(own),
        };
    }

    fn position(&self) -> String {
        text::write(self)
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry.0 < Self::SYMMETRIES
    }

    fn write_row(&self, (): (), symmetry: Symmetry, row: &mut Vec<u32>) {
        row::write(self, symmetry, row);
    }

    fn policy_index(&self, (): (), symmetry: Symmetry, action: Action) -> u32 {
        row::turn_square(symmetry, action)
    }

    fn row_symmetries((): ()) -> RowSymmetries {
        row::symmetries()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns all rows of five, found square by square.
    fn rows_of_five() -> Vec<u64> {
        let mut rows = Vec::new();
        for (rank, file) in (0..8i32).flat_map(|rank| (0..8i32).map(move |file| (rank, file))) {
            for (up, right) in [(0, 1), (1, 0), (1, 1), (1, -1)] {
                let squares = [0, 1, 2, 3, 4].map(|step| (rank + up * step, file + right * step));
                if squares
                    .iter()
                    .all(|&(rank, file)| rank < 8 && (0..8).contains(&file))
                {
                    rows.push(
                        squares
                            .iter()
                            .fold(0, |row, (rank, file)| row | 1 << (8 * rank + file)),
                    );
                }
            }
        }
        rows
    }

    #[test]
    fn five_in_a_row_win_and_four_of_them_do_not() {
        assert_eq!(rows_of_five().len(), 32 + 32 + 16 + 16);
        for row in rows_of_five() {
            assert!(has_five(row));
            for square in bits::squares(row) {
                assert!(!has_five(row & !(1 << square)));
            }
        }
    }

    #[test]
    fn six_in_a_row_win_too() {
        assert!(has_five(0b11_1111));
    }

    proptest! {
        #[test]
        fn has_five_agrees_with_a_search_of_all_rows(stones: u64, more: u64) {
            for stones in [stones, stones & more, stones | more] {
                prop_assert_eq!(has_five(stones), rows_of_five().iter().any(|row| stones & row == *row));
            }
        }
    }
}
