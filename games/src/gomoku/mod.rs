//! Gomoku on 8×8: five or more stones in a row win; Black begins on any square.
//!
//! Drawing and notation are in `notation`. A row has one entry for each square, set in one of three planes (own stone, other stone,
//! empty), then the player to move.
//!
//! Action `8·rank + file` (a1 = 0) puts a stone on an empty square. A full board without five in a row is a draw. All
//! eight symmetries of the square hold.

mod notation;

use crate::{
    bits,
    codec::PolicyHead,
    discs::{self, Discs},
    game::{Action, Game, IllegalAction, KnownOutcome, NoRules, Outcome, SingleEncoding, StartError},
    layout::RowLayout,
    planes::{self, SQUARES},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// A position of Gomoku.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gomoku {
    discs: Discs,
    /// True if the other player has five in a row.
    is_lost: bool,
}

impl Gomoku {
    /// The empty board.
    pub const EMPTY: Self = Self {
        discs: Discs::of_players([0, 0], Player::First),
        is_lost: false,
    };

    const fn empty_squares(&self) -> u64 {
        if self.is_lost { 0 } else { !self.discs.all() }
    }
}

/// Directions of rows, each with the shift of one step and the squares from which a row of five can run in it.
const DIRECTIONS: [(u32, u64); 4] = {
    /// Squares from which a row of five can run towards higher files.
    const RIGHTWARD: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    /// Squares from which a row of five can run towards lower files.
    const LEFTWARD: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    [(1, RIGHTWARD), (8, u64::MAX), (9, RIGHTWARD), (7, LEFTWARD)]
};

/// True if five of these stones are in a row.
fn has_five(stones: u64) -> bool {
    let found = DIRECTIONS.iter().fold(0, |found, &(step, starts)| {
        let pairs = stones & stones >> step;
        let fours = pairs & pairs >> (2 * step);
        found | fours & stones >> (4 * step) & starts
    });
    found != 0
}

/// True if one more stone, on one of the `empty` squares, makes five of these stones in a row.
fn can_complete_five(stones: u64, empty: u64) -> bool {
    let found = DIRECTIONS.iter().fold(0, |found, &(step, starts)| {
        // Squares from which a row runs that has a stone on each square so far, and those whose row lacks one of them.
        let (mut full, mut lacking) = (starts, 0);
        for shift in [0, step, 2 * step, 3 * step, 4 * step] {
            lacking = lacking & stones >> shift | full & empty >> shift;
            full &= stones >> shift;
        }
        found | lacking
    });
    found != 0
}

/// Returns the image of a square, which is also a policy entry.
const fn turn_square(symmetry: Symmetry, square: u32) -> u32 {
    bits::turn_square(square, symmetry.0)
}

impl Game for Gomoku {
    type Rules = NoRules;
    type Encoding = SingleEncoding;

    const NAME: &'static str = "gomoku";
    const PLAYERS: u8 = 2;
    const ACTIONS: u32 = 64;
    const SYMMETRIES: u8 = 8;

    fn start(_: &NoRules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or(Ok(Self::EMPTY), |text| read(text).map_err(StartError::of::<Self>))
    }

    fn layout(_: SingleEncoding) -> RowLayout {
        // Each action is a square, so the policy is one plane.
        discs::layout::<Self>(SQUARES as u32, true, PolicyHead::Planes)
    }

    fn to_move(&self) -> Player {
        self.discs.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.is_lost {
            Some(Outcome::Won(self.to_move().other()))
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
            return fault("the square has a stone");
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        // An action that is not legal changes nothing but the player to move.
        let mut discs = self.discs;
        discs.own |= self.empty_squares() & 1 << (action & 63);
        *self = Self {
            is_lost: self.is_lost || has_five(discs.own),
            discs: discs.passed(),
        };
    }

    fn position(&self) -> String {
        self.discs.text()
    }

    fn write_row(&self, _: SingleEncoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        let turned = self.discs.map(|stones| bits::turn(stones, symmetry.0));
        turned.write_cells(0..SQUARES as u32, row);
    }

    fn policy_index(&self, _: SingleEncoding, symmetry: Symmetry, action: Action) -> u32 {
        turn_square(symmetry, action)
    }

    fn row_symmetries(_: SingleEncoding) -> RowSymmetries {
        planes::symmetries(
            &Self::layout(SingleEncoding),
            Self::SYMMETRIES,
            &[],
            turn_square,
            turn_square,
        )
    }

    fn known(&self) -> Option<KnownOutcome> {
        let wins = can_complete_five(self.discs.own, self.empty_squares());
        wins.then(|| KnownOutcome::win_at_once(self.to_move()))
    }
}

/// Reads a position.
///
/// # Errors
/// Sentence that says what is wrong with the text.
fn read(text: &str) -> Result<Gomoku, String> {
    let discs = Discs::read(text)?;
    let is_lost = discs.check_turns(has_five)?;
    Ok(Gomoku { discs, is_lost })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows_of_five() -> Vec<u64> {
        discs::lines(8, 8, 5)
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

    proptest! {
        #[test]
        fn has_five_agrees_with_a_search_of_all_rows(stones: u64, more: u64) {
            for stones in [stones, stones & more, stones | more] {
                prop_assert_eq!(has_five(stones), rows_of_five().iter().any(|row| stones & row == *row));
            }
        }
    }
}
