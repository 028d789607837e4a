//! [`Position`]: a state of the game without its history.

use cozy_chess::Square;
use serde::Serialize;

use super::{board::Board, castling::Castling, piece::Kind};
use crate::Player;

/// Kind of action that the player to act must take next. All legal actions of a state are of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
pub enum RequiredAction {
    /// A promotion, then a turn: the opponent moved a union that carried the player's pawn to its last row.
    PromoteThenLift,
    /// A lift: the turn begins.
    Lift,
    /// A placement: a piece or pair is in the hand.
    Place,
    /// A promotion, then a placement: the player's pawn entered a union on the last row and released a piece.
    PromoteThenPlace,
    /// A promotion that ends the turn: the player's pawn reached the last row and released nothing.
    PromoteThenFinish,
}

impl RequiredAction {
    /// True if the next action is a promotion.
    pub fn is_promotion(self) -> bool {
        matches!(
            self,
            Self::PromoteThenLift | Self::PromoteThenPlace | Self::PromoteThenFinish
        )
    }
}

/// Result of a game on the board. Dead ends are not included; [`super::DeadEnd`] says how they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
pub enum Victory {
    /// The game is not decided.
    Running,
    /// White united with the black king.
    PacoVictoryWhite,
    /// Black united with the white king.
    PacoVictoryBlack,
    /// Draw: a hundred lifts without a new union or promotion.
    NoProgressDraw,
    /// Draw: a position was recorded as often as the rules allow.
    RepetitionDraw,
}

impl Victory {
    pub(super) const fn of(player: Player) -> Self {
        match player {
            Player::First => Self::PacoVictoryWhite,
            Player::Second => Self::PacoVictoryBlack,
        }
    }
}

/// Piece or pair that the player to act has lifted, or that a chain has released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hand {
    /// Square from which it moves: its origin, or the square where a chain released it.
    pub(super) square: Square,
    /// Piece of the player to act, which determines how the hand moves.
    pub(super) own: Kind,
    /// Opponent's piece, if a whole union was lifted.
    pub(super) partner: Option<Kind>,
}

/// State of the game without its history. No method panics, whatever its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) board: Board,
    pub(super) hand: Option<Hand>,
    pub(super) en_passant: Option<Square>,
    /// Square of the pawn that must be promoted next.
    pub(super) promotion: Option<Square>,
    pub(super) castling: Castling,
    pub(super) to_move: Player,
    pub(super) required: RequiredAction,
    pub(super) victory: Victory,
    /// Number of lifts since the last new union or promotion.
    pub(super) no_progress: u8,
}

impl Position {
    pub(super) fn is_running(&self) -> bool {
        self.victory == Victory::Running
    }
}
