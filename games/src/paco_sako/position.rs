//! One moment of a game without its history: [`Position`].

use cozy_chess::{BitBoard, Color, Rank, Square};

use super::{board::Board, castling::Castling, piece::Kind};
use crate::Player;

/// What the player to act has to do next. All legal actions of a state are of one sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RequiredAction {
    /// The opponent moved a union that carried your pawn onto its promotion row: promote it, then take your turn.
    PromoteThenLift,
    /// Start of a turn.
    Lift,
    /// A piece (or pair) is in the hand.
    Place,
    /// Your pawn entered a union on the last row and released a piece: promote, then place that piece.
    PromoteThenPlace,
    /// Your pawn reached the last row with the end of the move: promote, and the turn is over.
    PromoteThenFinish,
}

impl RequiredAction {
    /// Whether the next action is a promotion.
    pub fn is_promotion(self) -> bool {
        matches!(
            self,
            Self::PromoteThenLift | Self::PromoteThenPlace | Self::PromoteThenFinish
        )
    }

    /// The name used in data files, e.g. `PromoteThenLift`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PromoteThenLift => "PromoteThenLift",
            Self::Lift => "Lift",
            Self::Place => "Place",
            Self::PromoteThenPlace => "PromoteThenPlace",
            Self::PromoteThenFinish => "PromoteThenFinish",
        }
    }
}

/// Whether and how the game was decided on the board (dead ends are [`super::DeadEnd`]'s business).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Victory {
    /// Not decided.
    Running,
    /// White united with the black king.
    PacoVictoryWhite,
    /// Black united with the white king.
    PacoVictoryBlack,
    /// A hundred lifts without a new union or promotion.
    NoProgressDraw,
    /// The same position was recorded too often.
    RepetitionDraw,
}

impl Victory {
    pub(super) const fn of(player: Player) -> Self {
        match player {
            Player::First => Self::PacoVictoryWhite,
            Player::Second => Self::PacoVictoryBlack,
        }
    }

    /// The name used in data files, e.g. `PacoVictoryWhite`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::PacoVictoryWhite => "PacoVictoryWhite",
            Self::PacoVictoryBlack => "PacoVictoryBlack",
            Self::NoProgressDraw => "NoProgressDraw",
            Self::RepetitionDraw => "RepetitionDraw",
        }
    }
}

/// What the player to act holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hand {
    /// Where it hovers: its origin, or the square where a chain released it.
    pub(super) square: Square,
    /// The player's own piece; it decides how the hand moves.
    pub(super) own: Kind,
    /// The partner, where a whole union was lifted.
    pub(super) partner: Option<Kind>,
}

/// A state but for its history. Every method is total: no input makes it panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) board: Board,
    pub(super) hand: Option<Hand>,
    pub(super) en_passant: Option<Square>,
    /// The square of a pawn that must be promoted next.
    pub(super) promotion: Option<Square>,
    pub(super) castling: Castling,
    pub(super) to_move: Player,
    pub(super) required: RequiredAction,
    pub(super) victory: Victory,
    /// Lifts since the last new union or promotion.
    pub(super) no_progress: u8,
    /// 1 and one more for each change of player.
    pub(super) half_moves: u32,
    /// 1 and one more for each change to White.
    pub(super) moves: u32,
    /// 1 and one more for each action.
    pub(super) actions: u32,
}

impl Position {
    pub(super) fn is_running(&self) -> bool {
        self.victory == Victory::Running
    }

    /// Hands the turn to the other player.
    pub(super) fn switch_player(&mut self) {
        self.to_move = self.to_move.other();
        self.half_moves = self.half_moves.saturating_add(1);
        if self.to_move == Player::First {
            self.moves = self.moves.saturating_add(1);
        }
    }
}

/// The row this player's king starts on.
pub(super) fn home_row(player: Player) -> Rank {
    match player {
        Player::First => Rank::First,
        Player::Second => Rank::Eighth,
    }
}

/// The row this player's pawns start on.
pub(super) fn pawn_row(player: Player) -> Rank {
    match player {
        Player::First => Rank::Second,
        Player::Second => Rank::Seventh,
    }
}

/// All squares, one row further as this player's pawns walk.
pub(super) fn ahead(player: Player, squares: BitBoard) -> BitBoard {
    match player {
        Player::First => BitBoard(squares.0 << 8),
        Player::Second => BitBoard(squares.0 >> 8),
    }
}

pub(super) fn color(player: Player) -> Color {
    match player {
        Player::First => Color::White,
        Player::Second => Color::Black,
    }
}
