//! Squares on which a hand can be placed, and pieces that can be lifted. Castling is in [`super::castling`].

use cozy_chess::{
    BitBoard, File, Rank, Square, get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks,
    get_rook_moves,
};

use super::{
    board::Board,
    piece::{Kind, ahead, color},
    position::Hand,
};
use crate::Player;

/// Returns the squares that a piece attacks: sliders up to and including the first occupied square, pawns both forward
/// diagonals.
pub(super) fn attacks(kind: Kind, square: Square, player: Player, occupied: BitBoard) -> BitBoard {
    match kind {
        Kind::Pawn => get_pawn_attacks(square, color(player)),
        Kind::Rook => get_rook_moves(square, occupied),
        Kind::Knight => get_knight_moves(square),
        Kind::Bishop => get_bishop_moves(square, occupied),
        Kind::Queen => get_rook_moves(square, occupied) | get_bishop_moves(square, occupied),
        Kind::King => get_king_moves(square),
    }
}

/// Returns the squares on which `hand` can be placed, on a board without it.
///
/// A single piece can enter empty squares and those with an opponent's piece (a new union, or a chain). A pair or the king
/// can enter empty squares only.
pub(super) fn targets(board: &Board, player: Player, hand: Hand, en_passant: Option<Square>) -> BitBoard {
    let theirs = board.occupied(player.other());
    let occupied = board.occupied(player) | theirs;
    let is_pair = hand.partner.is_some();
    if hand.own == Kind::Pawn {
        let pushes = pawn_pushes(hand.square, player, occupied);
        if is_pair {
            return pushes;
        }
        let goals = theirs | squares(en_passant);
        return pushes | (get_pawn_attacks(hand.square, color(player)) & goals);
    }
    let blocked = if is_pair || hand.own == Kind::King {
        occupied
    } else {
        occupied - theirs
    };
    attacks(hand.own, hand.square, player, occupied) - blocked
}

/// Returns the squares whose piece or union `player` can lift: those from which it can be placed on some square. The rest
/// of the turn is not checked, and castling alone does not make a king liftable.
pub(super) fn liftable(board: &Board, player: Player, en_passant: Option<Square>) -> BitBoard {
    let mobility = Mobility::new(board, player, en_passant);
    let mut found = mobility.movable_pawns(board);
    for square in board.occupied(player) - board.of(player, Kind::Pawn) {
        if mobility.can_leave(board, square) {
            found |= square.bitboard();
        }
    }
    found
}

/// True if [`liftable`] has any square.
pub(super) fn can_lift(board: &Board, player: Player, en_passant: Option<Square>) -> bool {
    let mobility = Mobility::new(board, player, en_passant);
    let others = board.occupied(player) - board.of(player, Kind::Pawn);
    !mobility.movable_pawns(board).is_empty() || others.iter().any(|square| mobility.can_leave(board, square))
}

/// Squares that decide which pieces of one colour can move, computed once for a board.
struct Mobility {
    player: Player,
    /// Squares with an opponent's piece.
    theirs: BitBoard,
    occupied: BitBoard,
    en_passant: BitBoard,
}

impl Mobility {
    fn new(board: &Board, player: Player, en_passant: Option<Square>) -> Self {
        let theirs = board.occupied(player.other());
        Self {
            player,
            theirs,
            occupied: board.occupied(player) | theirs,
            en_passant: squares(en_passant),
        }
    }

    /// Returns the pawns that can move: those with an empty square ahead, and single ones with a square to enter
    /// diagonally.
    fn movable_pawns(&self, board: &Board) -> BitBoard {
        let pawns = board.of(self.player, Kind::Pawn);
        let behind = self.player.other();
        let pushable = pawns & ahead(behind, !self.occupied);
        let goals = ahead(behind, self.theirs | self.en_passant);
        let sideways = (goals - File::H.bitboard()).0 << 1 | (goals - File::A.bitboard()).0 >> 1;
        pushable | ((pawns - self.theirs) & BitBoard(sideways))
    }

    /// True if the piece on `square`, which is not a pawn, can move.
    fn can_leave(&self, board: &Board, square: Square) -> bool {
        let Some(kind) = board.kind_at(self.player, square) else {
            return false;
        };
        let is_pair = self.theirs.has(square);
        let blocked = if is_pair || kind == Kind::King {
            self.occupied
        } else {
            self.occupied - self.theirs
        };
        !attacks(kind, square, self.player, self.occupied).is_subset(blocked)
    }
}

/// Returns the squares that a pawn can enter by going ahead: one step if the square is empty, and a second step from the
/// first two rows. A pawn is on its own first row after a union carried it there.
fn pawn_pushes(square: Square, player: Player, occupied: BitBoard) -> BitBoard {
    let one = ahead(player, square.bitboard()) - occupied;
    let may_double = match player {
        Player::First => square.rank() <= Rank::Second,
        Player::Second => square.rank() >= Rank::Seventh,
    };
    if may_double {
        one | (ahead(player, one) - occupied)
    } else {
        one
    }
}

fn squares(square: Option<Square>) -> BitBoard {
    square.map_or(BitBoard::EMPTY, Square::bitboard)
}
