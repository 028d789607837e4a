//! Connect Four on 7 columns of 6 cells, which lie in ranks 0–5 and files 0–6 of an 8×8 board.
//!
//! | module | content |
//! |---|---|
//! | `board` | discs as bits: legal landings, four in a line |
//! | `text` | positions as text, checked when read |
//! | `notation` | drawing and notation |
//! | [`solver`] | exact values of positions |
//!
//! A row has one entry for each of the 42 cells, bottom row first, set in one of three planes (own disc, other disc, empty), then
//! the player to move. So no entry is absent, even on the empty board.
//!
//! Action `c` drops a disc into column `c`, 0 to 6. There is one symmetry besides the identity: the left-right mirror.

mod board;
mod notation;
pub mod solver;
mod text;

use crate::{
    bits,
    codec::PolicyHead,
    discs::{self, Discs},
    game::{Action, Game, IllegalAction, KnownOutcome, NoRules, Outcome, SingleEncoding, StartError},
    layout::RowLayout,
    planes,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// Number of columns.
pub const COLUMNS: u32 = 7;
/// Number of cells of a column.
pub const ROWS: u32 = 6;

/// A position of Connect Four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectFour {
    discs: Discs,
    /// True if the other player has four in a line.
    is_lost: bool,
}

impl ConnectFour {
    /// The empty board.
    pub const EMPTY: Self = Self {
        discs: Discs::of_players([0, 0], Player::First),
        is_lost: false,
    };

    /// Returns the number of discs on the board.
    pub const fn discs(&self) -> u32 {
        self.discs.all().count_ones()
    }

    /// Returns the discs of the player to move, then of the other: bit `8·row + column`, row 0 at the bottom.
    pub const fn bitboards(&self) -> (u64, u64) {
        (self.discs.own, self.discs.other)
    }

    /// Returns the columns that can be played, as bits 0 to 6. None once the game is over.
    fn open_columns(&self) -> u64 {
        if self.is_lost {
            return 0;
        }
        board::columns(board::landings(self.discs.all()))
    }
}

/// Returns the image of a column, which is also a policy entry. The file next to the board stays where it is.
const fn turn_column(symmetry: Symmetry, column: u32) -> u32 {
    match symmetry {
        Symmetry::IDENTITY => column,
        _ if column >= COLUMNS => column,
        _ => COLUMNS - 1 - column,
    }
}

impl Game for ConnectFour {
    type Rules = NoRules;
    type Encoding = SingleEncoding;

    const NAME: &'static str = "connect-four";
    const PLAYERS: u8 = 2;
    const ACTIONS: u32 = COLUMNS;
    const SYMMETRIES: u8 = 2;

    fn start(_: &NoRules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or(Ok(Self::EMPTY), |text| {
            text::read(text).map_err(StartError::of::<Self>)
        })
    }

    fn layout(_: SingleEncoding) -> RowLayout {
        discs::layout::<Self>(ROWS * COLUMNS, true, PolicyHead::Dense)
    }

    fn to_move(&self) -> Player {
        self.discs.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.is_lost {
            Some(Outcome::Won(self.to_move().other()))
        } else if self.discs.all() == board::CELLS {
            Some(Outcome::Draw)
        } else {
            None
        }
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        actions.extend(bits::squares(self.open_columns()));
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        if action >= COLUMNS {
            return fault("the column must be 0 to 6");
        }
        if self.outcome().is_some() {
            return fault("the game is over");
        }
        if self.open_columns() & (1 << action) == 0 {
            return fault("the column is full");
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        let mut discs = self.discs;
        discs.own |= board::landings(discs.all()) & (board::COLUMN << (action & 7));
        *self = Self {
            is_lost: board::has_four(discs.own),
            discs: discs.passed(),
        };
    }

    fn position(&self) -> String {
        text::write(self.discs)
    }

    fn write_row(&self, _: SingleEncoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        let seen = match symmetry {
            Symmetry::IDENTITY => self.discs,
            _ => self.discs.map(board::mirror),
        };
        let squares = (0..ROWS).flat_map(|rank| 8 * rank..8 * rank + COLUMNS);
        seen.write_cells(squares, row);
    }

    fn policy_index(&self, _: SingleEncoding, symmetry: Symmetry, action: Action) -> u32 {
        turn_column(symmetry, action)
    }

    fn row_symmetries(_: SingleEncoding) -> RowSymmetries {
        let turn_square = |symmetry, square: u32| square / 8 * 8 + turn_column(symmetry, square % 8);
        planes::symmetries(
            &Self::layout(SingleEncoding),
            Self::SYMMETRIES,
            &[],
            turn_square,
            turn_column,
        )
    }

    fn known(&self) -> Option<KnownOutcome> {
        solver::at_once(self)
    }
}
