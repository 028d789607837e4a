//! Connect Four on 7 columns of 6 cells, which lie in ranks 0–5 and files 0–6 of an 8×8 board.
//!
//! | module | content |
//! |---|---|
//! | `state` | the state of a game |
//! | `board` | discs as bits: legal landings, four in a line |
//! | `text` | positions as text, checked when read |
//! | `row` | the index row, its layout and its symmetries |
//! | `people` | drawing and notation |
//! | [`solver`] | exact values of positions |
//!
//! Action `c` drops a disc into column `c`, 0 to 6. There is one symmetry besides the identity: the left-right mirror.

mod board;
mod people;
mod row;
pub mod solver;
mod state;
mod text;

use serde::{Deserialize, Serialize};

use crate::{
    bits,
    game::{Action, Game, IllegalAction, Known, Outcome, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

pub use state::{COLUMNS, ConnectFour, ROWS};

/// Connect Four has no variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {}

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
        row::layout()
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
        row::write(self, symmetry, row);
    }

    fn policy_index(&self, (): (), symmetry: Symmetry, action: Action) -> u32 {
        row::turn_column(symmetry, action)
    }

    fn row_symmetries((): ()) -> RowSymmetries {
        row::symmetries()
    }

    fn known(&self) -> Option<Known> {
        solver::at_once(self)
    }
}
