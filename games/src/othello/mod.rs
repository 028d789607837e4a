//! Othello on 8×8. Squares are `8·rank + file`; a1 (0) is drawn at the top left. Black begins.
//!
//! | module | content |
//! |---|---|
//! | `state` | the state of a game |
//! | `board` | legal placements and turned discs, on bitboards |
//! | `endgame` | exact outcomes of the last few empty squares |
//! | `text` | positions as text, checked when read |
//! | `row` | the index row, its layout and its symmetries |
//! | `people` | drawing and notation |
//!
//! Actions 0–63 place a disc. Action 64 passes, which is legal only if no disc can be placed. The game is over when neither
//! player can place a disc, and the player with more discs wins. All eight symmetries of the square hold.

mod board;
mod endgame;
mod people;
mod row;
mod state;
mod text;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{
    bits,
    game::{Action, Game, IllegalAction, Known, Outcome, StartError},
    layout::RowLayout,
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

pub use state::{Othello, PASS};

/// Othello has no variants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {}

impl Game for Othello {
    type Rules = Rules;
    type Encoding = ();

    const NAME: &'static str = "othello";
    const PLAYERS: u8 = 2;
    const ACTIONS: u32 = 65;
    const SYMMETRIES: u8 = 8;

    fn start(_: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or_else(|| Ok(Self::initial()), text::read)
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
        if !self.over {
            return None;
        }
        Some(match self.own.count_ones().cmp(&self.other.count_ones()) {
            Ordering::Greater => Outcome::Won(self.to_move),
            Ordering::Less => Outcome::Won(self.to_move.other()),
            Ordering::Equal => Outcome::Draw,
        })
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if self.placements != 0 {
            actions.extend(bits::squares(self.placements));
        } else if !self.over {
            actions.push(PASS);
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        if self.over {
            return fault("the game is over");
        }
        match action {
            0..PASS if self.placements >> action & 1 == 0 => return fault("no disc would be turned over"),
            PASS if self.placements != 0 => return fault("a disc can be placed, so passing is not allowed"),
            0..=PASS => self.play_legal(action),
            _ => return fault("the action must be 0 to 64"),
        }
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        *self = if action < PASS {
            let placed = 1 << action;
            let turned = board::turned(placed, self.own, self.other);
            Self::new(
                self.other & !turned,
                self.own | turned | placed,
                self.to_move.other(),
            )
        } else {
            Self::new(self.other, self.own, self.to_move.other())
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
        row::turn_entry(symmetry, action)
    }

    fn row_symmetries((): ()) -> RowSymmetries {
        row::symmetries()
    }

    fn known(&self) -> Option<Known> {
        endgame::known(self)
    }
}
