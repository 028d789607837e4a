//! Othello on 8×8. Squares are `8·rank + file`; a1 (0) is drawn at the top left. Black begins.
//!
//! | module | content |
//! |---|---|
//! | `board` | legal placements and turned discs, on bitboards |
//! | `endgame` | exact outcomes of the last few empty squares |
//! | `notation` | drawing and notation |
//!
//! A row has one entry for each disc (the first one again for every empty square), then the player to move.
//!
//! Actions 0–63 place a disc. Action 64 passes, which is legal only if no disc can be placed. The game is over when neither
//! player can place a disc, and the player with more discs wins. All eight symmetries of the square hold.

mod board;
mod endgame;
mod notation;

use std::cmp::Ordering;

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

/// Action that passes.
pub const PASS: Action = 64;

/// A position of Othello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Othello {
    discs: Discs,
    /// Squares on which the player to move may place a disc. If there is none, the player passes, or the game is over.
    placements: u64,
    /// True if neither player can place a disc.
    over: bool,
}

impl Othello {
    fn new(discs: Discs) -> Self {
        let Discs { own, other, .. } = discs;
        let placements = board::placements(own, other);
        Self {
            discs,
            placements,
            over: placements == 0 && board::placements(other, own) == 0,
        }
    }

    /// Returns the usual start: Black (first) on e4 and d5, White on d4 and e5.
    pub fn initial() -> Self {
        Self::new(Discs::of_players(
            [1 << 28 | 1 << 35, 1 << 27 | 1 << 36],
            Player::First,
        ))
    }

    /// Returns the discs of the player to move, then of the other: bit `8·rank + file`.
    pub const fn bitboards(&self) -> (u64, u64) {
        (self.discs.own, self.discs.other)
    }
}

/// Reads a position.
///
/// # Errors
/// Sentence that says what is wrong with the text.
fn read(text: &str) -> Result<Othello, String> {
    let discs = Discs::read(text)?;
    if discs.all() == 0 {
        return Err("the board is empty".into());
    }
    Ok(Othello::new(discs))
}

/// Returns the image of a policy entry: squares turn with the board, the pass stays.
fn turn_entry(symmetry: Symmetry, entry: u32) -> u32 {
    match entry {
        PASS.. => entry,
        square => turn_square(symmetry, square),
    }
}

const ACTIONS: u32 = 65;
const SYMMETRIES: u8 = 8;

fn turn_square(symmetry: Symmetry, square: u32) -> u32 {
    bits::turn_square(square, symmetry.0)
}

impl Game for Othello {
    type Rules = NoRules;
    type Encoding = SingleEncoding;

    const NAME: &'static str = "othello";
    const PLAYERS: u8 = 2;

    fn start(_: &NoRules, position: Option<&str>) -> Result<Self, StartError> {
        position.map_or(Ok(Self::initial()), |text| {
            read(text).map_err(StartError::of::<Self>)
        })
    }

    fn layout(_: SingleEncoding) -> RowLayout {
        discs::layout::<Self>((8, 8), ACTIONS, PolicyHead::Dense, false)
    }

    fn actions(&self) -> u32 {
        ACTIONS
    }

    fn symmetries(&self) -> u8 {
        SYMMETRIES
    }

    fn to_move(&self) -> Player {
        self.discs.to_move
    }

    fn outcome(&self) -> Option<Outcome> {
        if !self.over {
            return None;
        }
        let (own, other) = self.bitboards();
        Some(match own.count_ones().cmp(&other.count_ones()) {
            Ordering::Greater => Outcome::Won(self.to_move()),
            Ordering::Less => Outcome::Won(self.to_move().other()),
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
        let mut discs = self.discs;
        if action < PASS {
            let placed = 1 << action;
            let turned = board::turned(placed, discs.own, discs.other);
            discs.own |= turned | placed;
            discs.other &= !turned;
        }
        *self = Self::new(discs.passed());
    }

    fn position(&self) -> String {
        self.discs.text()
    }

    fn write_row(&self, _: SingleEncoding, symmetry: Symmetry, row: &mut Vec<u32>) {
        // A position has at least one disc: `read` refuses an empty board, and no disc leaves the board.
        self.discs
            .map(|discs| bits::turn(discs, symmetry.0))
            .write_discs(row);
    }

    fn policy_index(&self, _: SingleEncoding, symmetry: Symmetry, action: Action) -> u32 {
        turn_entry(symmetry, action)
    }

    fn row_symmetries(_: SingleEncoding) -> RowSymmetries {
        planes::symmetries(
            &Self::layout(SingleEncoding),
            SYMMETRIES,
            &[],
            turn_square,
            turn_entry,
        )
    }

    fn known(&self) -> Option<KnownOutcome> {
        endgame::known(self)
    }
}
