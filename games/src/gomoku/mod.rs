//! Gomoku on boards of 5×5 to 19×19 squares: five or more stones in a row win; Black begins on any square.
//!
//! | module | content |
//! |---|---|
//! | `five` | rows of five, on sets of squares |
//! | `notation` | drawing and notation |
//!
//! A row has one entry for each square, set in one of three planes (own stone, other stone, empty), then the player to move.
//!
//! Action `size·rank + file` (a1 = 0) puts a stone on an empty square. A full board without five in a row is a draw. All
//! eight symmetries of the square hold.

mod five;
mod notation;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use crate::{
    codec::PolicyHead,
    discs,
    game::{Action, Game, IllegalAction, KnownOutcome, Outcome, Sizes, StartError},
    layout::RowLayout,
    planes,
    stones::{self, Stones},
    symmetries::{RowSymmetries, Symmetry},
    value::Player,
};

/// Rules of Gomoku.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Number of squares of a side, 5 to 19.
    pub size: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self { size: SIZES.usual }
    }
}

/// A position of Gomoku.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gomoku {
    stones: Stones,
    /// True if the other player has five in a row.
    is_lost: bool,
}

impl Gomoku {
    /// True if a stone may be put on this square.
    fn is_legal(&self, square: u32) -> bool {
        !self.is_lost && self.stones.empty().has(square)
    }
}

const SIZES: Sizes = Sizes {
    least: 5,
    usual: 8,
    most: 19,
};

const SYMMETRIES: u8 = 8;

impl Game for Gomoku {
    type Rules = Rules;
    /// The rows of a board of this size.
    type Encoding = Rules;

    const NAME: &'static str = "gomoku";
    const PLAYERS: u8 = 2;
    const SIZES: Option<Sizes> = Some(SIZES);

    fn start(rules: &Rules, position: Option<&str>) -> Result<Self, StartError> {
        SIZES.check::<Self>(rules.size)?;
        let Some(text) = position else {
            return Ok(Self {
                stones: Stones::none(rules.size),
                is_lost: false,
            });
        };
        read(text, rules.size).map_err(StartError::of::<Self>)
    }

    fn encoding(rules: &Rules, options: u32) -> Result<Rules, StartError> {
        SIZES.check::<Self>(rules.size)?;
        StartError::unless_zero::<Self>(options)?;
        Ok(*rules)
    }

    fn layout(Rules { size }: Rules) -> RowLayout {
        // Each action is a square, so the policy is one plane.
        discs::layout::<Self>((size, size), size * size, PolicyHead::Planes, true)
    }

    fn actions(&self) -> u32 {
        self.stones.area()
    }

    fn symmetries(&self) -> u8 {
        SYMMETRIES
    }

    fn to_move(&self) -> Player {
        self.stones.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if self.is_lost {
            Some(Outcome::Won(self.to_move().other()))
        } else if self.stones.empty().is_empty() {
            Some(Outcome::Draw)
        } else {
            None
        }
    }

    fn legal_actions(&self, actions: &mut Vec<Action>) {
        actions.clear();
        if !self.is_lost {
            self.stones
                .empty()
                .squares()
                .for_each(|square| actions.push(square));
        }
    }

    fn play(&mut self, action: Action) -> Result<(), IllegalAction> {
        let fault = |reason| Err(IllegalAction { action, reason });
        if action >= self.actions() {
            return fault("there is no such square");
        }
        if self.outcome().is_some() {
            return fault("the game is over");
        }
        if !self.is_legal(action) {
            return fault("the square has a stone");
        }
        self.play_legal(action);
        Ok(())
    }

    fn play_legal(&mut self, action: Action) {
        // An action that is not legal changes nothing but the player to move.
        let mover = self.to_move();
        if self.is_legal(action) {
            self.stones.place(action, mover);
        }
        self.is_lost |= five::has_five(self.stones.of(mover), self.stones.side());
        self.stones.to_move = mover.other();
    }

    fn position(&self) -> String {
        self.stones.text()
    }

    fn write_row(&self, _: Rules, symmetry: Symmetry, row: &mut Vec<u32>) {
        self.stones.write_squares(symmetry.0, row);
        row.push(u32::from(self.to_move() == Player::First));
    }

    fn policy_index(&self, _: Rules, symmetry: Symmetry, action: Action) -> u32 {
        stones::turn(action, self.stones.side(), symmetry.0)
    }

    fn row_symmetries(rules: Rules) -> RowSymmetries {
        let turn = |symmetry: Symmetry, square| stones::turn(square, rules.size, symmetry.0);
        planes::symmetries(&Self::layout(rules), SYMMETRIES, &[], turn, turn)
    }

    fn known(&self) -> Option<KnownOutcome> {
        let own = self.stones.of(self.to_move());
        let wins = five::can_complete_five(own, self.stones.empty(), self.stones.side());
        wins.then(|| KnownOutcome::win_at_once(self.to_move()))
    }
}

/// Reads a position.
///
/// # Errors
/// Sentence that says what is wrong with the text.
fn read(text: &str, size: u32) -> Result<Gomoku, String> {
    let stones = Stones::read(text, size)?;
    let is_lost = discs::check_turns(stones.counts(), stones.to_move, |player| {
        five::has_five(stones.of(player), size)
    })?;
    Ok(Gomoku { stones, is_lost })
}
