//! Rows, directions and colours of the two players.

use cozy_chess::{BitBoard, Color, Rank};

use crate::Player;

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
