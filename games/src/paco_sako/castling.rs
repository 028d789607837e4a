//! Squares on which castling rights allow a lifted king to be placed.

use cozy_chess::{BitBoard, Square, get_between_rays};

use super::{position::Position, rights::Wing, threats};
use crate::Player;

/// Returns the squares on which the player to act can place its lifted king to castle.
pub(super) fn targets(position: &Position) -> BitBoard {
    let player = position.to_move;
    [Wing::Queen, Wing::King]
        .into_iter()
        .filter(|&wing| position.castling.has(player, wing) && is_free(position, player, wing))
        .map(|wing| position.castling.target(player, wing).bitboard())
        .fold(BitBoard::EMPTY, |all, target| all | target)
}

/// True if all squares that either piece passes or enters are empty, and those of the king are not threatened.
fn is_free(position: &Position, player: Player, wing: Wing) -> bool {
    let path = position.castling.path(player, wing);
    let own = path.king.0.bitboard() | path.rook.0.bitboard();
    let passed = span(path.king) | span(path.rook);
    (passed - own).is_disjoint(position.board.all())
        && !threats::threatens_any(
            &position.board,
            player.other(),
            position.en_passant,
            span(path.king),
        )
}

/// Returns the squares of a move, both ends included.
fn span((from, to): (Square, Square)) -> BitBoard {
    get_between_rays(from, to) | from.bitboard() | to.bitboard()
}
