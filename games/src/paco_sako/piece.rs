//! Piece types, and what differs between the two players: rows, directions, colours. Rows of networks and FEN letters depend on the
//! order of the types (rook before knight).

use cozy_chess::{BitBoard, Color, Rank};

use crate::Player;

/// Type of a piece. The colour is a [`crate::Player`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Number 0.
    Pawn,
    /// Number 1.
    Rook,
    /// Number 2.
    Knight,
    /// Number 3.
    Bishop,
    /// Number 4.
    Queen,
    /// Number 5.
    King,
}

impl Kind {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::Pawn,
        Self::Rook,
        Self::Knight,
        Self::Bishop,
        Self::Queen,
        Self::King,
    ];

    /// Types that a pawn can be promoted to, in the order of the promotion actions.
    pub const PROMOTIONS: [Self; 4] = [Self::Rook, Self::Knight, Self::Bishop, Self::Queen];

    /// Returns the name, e.g. `pawn`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pawn => "pawn",
            Self::Rook => "rook",
            Self::Knight => "knight",
            Self::Bishop => "bishop",
            Self::Queen => "queen",
            Self::King => "king",
        }
    }

    /// Returns the letter of this player's single piece in a FEN: upper case for White.
    pub(super) const fn letter(self, player: Player) -> char {
        let letter = match self {
            Self::Pawn => 'P',
            Self::Rook => 'R',
            Self::Knight => 'N',
            Self::Bishop => 'B',
            Self::Queen => 'Q',
            Self::King => 'K',
        };
        match player {
            Player::First => letter,
            Player::Second => letter.to_ascii_lowercase(),
        }
    }

    /// Returns the type with this number. `None` from 6 on.
    pub(super) fn from_number(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }
}

/// Returns the row on which this player's king starts.
pub(super) fn home_row(player: Player) -> Rank {
    match player {
        Player::First => Rank::First,
        Player::Second => Rank::Eighth,
    }
}

/// Returns the row on which this player's pawns start.
pub(super) fn pawn_row(player: Player) -> Rank {
    match player {
        Player::First => Rank::Second,
        Player::Second => Rank::Seventh,
    }
}

/// Returns the squares moved one row forward, as this player's pawns move.
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
