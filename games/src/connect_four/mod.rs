//! Connect Four on 7 columns of 6 cells.
//!
//! | module | content |
//! |---|---|
//! | `board` | discs as bits: legal landings, four in a line |
//! | [`row`] | positions as rows |
//! | `text` | positions as text, checked when read |
//! | `notation` | drawing and notation |
//! | [`solver`] | exact values of positions |
//!
//! Action `c` drops a disc into column `c`, 0 to 6. There is one symmetry besides the identity: the left-right mirror.

mod board;
mod notation;
pub mod row;
pub mod solver;
mod text;

use crate::{
    bits,
    discs::Discs,
    game::{Action, Game, IllegalAction, KnownOutcome, NoRules, Outcome, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

pub use self::row::Encoding;

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

/// Number of symmetries: the identity and the mirror of left and right.
const SYMMETRIES: u8 = 2;

impl Game for ConnectFour {
    type Rules = NoRules;
    type Encoding = Encoding;

    const NAME: &'static str = "connect-four";
    const PLAYERS: u8 = 2;

    fn start(_: &NoRules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or(Ok(Self::EMPTY), |text| {
            text::read(text).map_err(StartError::of::<Self>)
        })
    }

    fn encoding(_: &NoRules, options: u32) -> Result<Encoding, StartError> {
        match options {
            0 => Ok(Encoding::Padded),
            1 => Ok(Encoding::Cells),
            _ => Err(StartError::of::<Self>(format!(
                "the representation options must be 0 or 1, not {options}"
            ))),
        }
    }

    fn layout(encoding: Encoding) -> RowLayout {
        encoding.layout()
    }

    fn actions(&self) -> u32 {
        COLUMNS
    }

    fn symmetries(&self) -> u8 {
        SYMMETRIES
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

    fn write_row(&self, encoding: Encoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        encoding.write(self, symmetry, row);
    }

    fn policy_index(&self, _: Encoding, symmetry: Symmetry, action: Action) -> u32 {
        row::turn_column(symmetry, action)
    }

    fn row_symmetries(encoding: Encoding) -> RowSymmetries {
        encoding.symmetries()
    }

    fn known(&self) -> Option<KnownOutcome> {
        solver::at_once(self)
    }
}
