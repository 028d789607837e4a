//! Where a piece in the hand may be put, and which pieces can be lifted; castling is in [`super::castling`].

use cozy_chess::{
    BitBoard, File, Rank, Square, get_bishop_moves, get_king_moves, get_knight_moves, get_pawn_attacks,
    get_rook_moves,
};

use super::{
    board::Board,
    piece::Kind,
    position::{Hand, ahead, color},
};
use crate::Player;

/// The squares a piece strikes: sliders up to and with the first occupied square, pawns both forward diagonals.
pub(super) fn strikes(kind: Kind, square: Square, player: Player, occupied: BitBoard) -> BitBoard {
    match kind {
        Kind::Pawn => get_pawn_attacks(square, color(player)),
        Kind::Rook => get_rook_moves(square, occupied),
        Kind::Knight => get_knight_moves(square),
        Kind::Bishop => get_bishop_moves(square, occupied),
        Kind::Queen => get_rook_moves(square, occupied) | get_bishop_moves(square, occupied),
        Kind::King => get_king_moves(square),
    }
}

/// The squares on which `hand` may be put, on a board without it.
///
/// A single piece may enter empty squares and those with an opponent's piece (a new union, or a chain);
/// a pair and the king only empty ones.
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
    strikes(hand.own, hand.square, player, occupied) - blocked
}

/// The squares whose piece or union `player` may lift: those from where it could be put somewhere.
/// No look-ahead, and castling alone does not make a king liftable.
pub(super) fn liftable(board: &Board, player: Player, en_passant: Option<Square>) -> BitBoard {
    let reach = Reach::new(board, player, en_passant);
    let mut found = reach.movable_pawns(board);
    for square in board.occupied(player) - board.of(player, Kind::Pawn) {
        if reach.can_leave(board, square) {
            found |= square.bitboard();
        }
    }
    found
}

/// Whether [`liftable`] has any square.
pub(super) fn can_lift(board: &Board, player: Player, en_passant: Option<Square>) -> bool {
    let reach = Reach::new(board, player, en_passant);
    let others = board.occupied(player) - board.of(player, Kind::Pawn);
    !reach.movable_pawns(board).is_empty() || others.iter().any(|square| reach.can_leave(board, square))
}

/// What [`liftable`] asks about one colour's pieces on one board.
struct Reach {
    player: Player,
    theirs: BitBoard,
    occupied: BitBoard,
    en_passant: BitBoard,
}

impl Reach {
    fn new(board: &Board, player: Player, en_passant: Option<Square>) -> Self {
        let theirs = board.occupied(player.other());
        Self {
            player,
            theirs,
            occupied: board.occupied(player) | theirs,
            en_passant: squares(en_passant),
        }
    }

    /// All pawns at once: those with an empty square ahead, and single ones with something to enter diagonally.
    fn movable_pawns(&self, board: &Board) -> BitBoard {
        let pawns = board.of(self.player, Kind::Pawn);
        let behind = self.player.other();
        let pushable = pawns & ahead(behind, !self.occupied);
        let goals = ahead(behind, self.theirs | self.en_passant);
        let beside = (goals - File::H.bitboard()).0 << 1 | (goals - File::A.bitboard()).0 >> 1;
        pushable | ((pawns - self.theirs) & BitBoard(beside))
    }

    /// Whether a piece that is no pawn has anywhere to go.
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
        !strikes(kind, square, self.player, self.occupied).is_subset(blocked)
    }
}

/// One step ahead if it is empty, and a second one from the first two rows (a pawn may have been dragged to its own first row).
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
