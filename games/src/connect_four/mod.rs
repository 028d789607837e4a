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

use serde::{Deserialize, Serialize};

use crate::{
    bits,
    codec::PolicyHead,
    discs::{self, Discs},
    game::{Action, Game, IllegalAction, Known, Outcome, StartError},
    layout::RowLayout,
    planes,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// Connect Four has no variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {}

/// Number of columns.
pub const COLUMNS: u32 = 7;
/// Number of cells of a column.
pub const ROWS: u32 = 6;

/// A position of Connect Four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectFour {
    /// Discs of the player to move.
    own: u64,
    /// Discs of the other player.
    other: u64,
    to_move: Player,
    /// True if the other player has four in a line.
    lost: bool,
}

impl ConnectFour {
    /// The empty board.
    pub const EMPTY: Self = Self {
        own: 0,
        other: 0,
        to_move: Player::First,
        lost: false,
    };

    /// Returns the number of discs on the board.
    pub const fn discs(&self) -> u32 {
        (self.own | self.other).count_ones()
    }

    /// Returns the discs of the player to move, then of the other: bit `8·row + column`, row 0 at the bottom.
    pub const fn bitboards(&self) -> (u64, u64) {
        (self.own, self.other)
    }

    /// Returns the columns that can be played, as bits 0 to 6. None once the game is over.
    fn open_columns(&self) -> u64 {
        if self.lost {
            return 0;
        }
        board::columns(board::landings(self.own | self.other))
    }

    fn drop_into(&mut self, column: u32) {
        let landing = board::landings(self.own | self.other) & (board::COLUMN << (column & 7));
        let own = self.own | landing;
        *self = Self {
            own: self.other,
            other: own,
            to_move: self.to_move.other(),
            lost: board::has_four(own),
        };
    }

    fn discs_by_square(&self) -> Discs {
        Discs {
            own: self.own,
            other: self.other,
            to_move: self.to_move,
        }
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
    type Rules = Rules;
    type Encoding = ();

    const NAME: &'static str = "connect-four";
    const PLAYERS: u8 = 2;
    const ACTIONS: u32 = COLUMNS;
    const SYMMETRIES: u8 = 2;

    fn start(_: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or(Ok(Self::EMPTY), text::read)
    }

    fn encoding(options: u32) -> Result<(), StartError> {
        crate::game::single_encoding(Self::NAME, options)
    }

    fn layout((): ()) -> RowLayout {
        discs::layout::<Self>(ROWS * COLUMNS, true, PolicyHead::Dense)
    }

    fn to_move(&self) -> Player {
        self.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.lost {
            Some(Outcome::Won(self.to_move.other()))
        } else if self.own | self.other == board::CELLS {
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
        self.drop_into(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        self.drop_into(action);
    }

    fn position(&self) -> String {
        text::write(self)
    }

    fn allows(&self, symmetry: Symmetry) -> bool {
        symmetry.0 < Self::SYMMETRIES
    }

    fn write_row(&self, (): (), symmetry: Symmetry, row: &mut Vec<u32>) {
        let own_view = self.discs_by_square();
        let seen = match symmetry {
            Symmetry::IDENTITY => own_view,
            _ => Discs {
                own: board::mirror(self.own),
                other: board::mirror(self.other),
                ..own_view
            },
        };
        let squares = (0..ROWS).flat_map(|rank| 8 * rank..8 * rank + COLUMNS);
        seen.write_cells(squares, row);
    }

    fn policy_index(&self, (): (), symmetry: Symmetry, action: Action) -> u32 {
        turn_column(symmetry, action)
    }

    fn row_symmetries((): ()) -> RowSymmetries {
        let turn_square = |symmetry, square: u32| square / 8 * 8 + turn_column(symmetry, square % 8);
        planes::symmetries(&Self::layout(()), Self::SYMMETRIES, &[], turn_square, turn_column)
    }

    fn known(&self) -> Option<Known> {
        solver::at_once(self)
    }
}
