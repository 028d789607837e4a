//! An upper bound of what a chain can threaten, in time that does not grow with the number of chains.
//!
//! Within a chain the occupied squares stay the same (but for en passant), so where a piece of a given type can be
//! placed from a given square is fixed; only which pieces lie in which unions changes. The bound forgets that a
//! piece placed somewhere has left another place: a union offers every type that could ever get there.

use cozy_chess::{BitBoard, Square};

use super::{
    apply::{is_promotion, pulled_back},
    board::Board,
    movement::strikes,
    piece::Kind,
    position::Hand,
};
use crate::Player;

/// Types of piece as a set of bits.
type Kinds = u8;

const CHAINING: [Kind; 5] = [Kind::Pawn, Kind::Rook, Kind::Knight, Kind::Bishop, Kind::Queen];
const PROMOTIONS: Kinds = bit(Kind::Rook) | bit(Kind::Knight) | bit(Kind::Bishop) | bit(Kind::Queen);

/// Squares that chains of `attacker` which start with `hand` can threaten at most; `board` is without the hand.
pub(super) fn bound(board: &Board, attacker: Player, hand: Hand, en_passant: Option<Square>) -> BitBoard {
    let mut walk = Walk::new(board, attacker, en_passant);
    walk.arrive(hand.square, bit(hand.own));
    while let Some(square) = walk.open.next_square() {
        walk.open -= square.bitboard();
        walk.leave(square);
    }
    walk.struck
}

struct Walk<'a> {
    board: &'a Board,
    attacker: Player,
    /// Occupied squares, and those after an en-passant move within the chain, if there may be one.
    occupied: [BitBoard; 2],
    /// Where a chain can go on: the attacker's unions, and the en-passant square if one is pulled back to it.
    unions: BitBoard,
    /// The square that becomes a union by en passant, and the one where that union stands before.
    passing: Option<(Square, Square)>,
    /// By square: types that may be in the hand there, and those that have been dealt with.
    hands: [Kinds; 64],
    left: [Kinds; 64],
    /// Squares with hands that have not been dealt with.
    open: BitBoard,
    struck: BitBoard,
}

impl<'a> Walk<'a> {
    fn new(board: &'a Board, attacker: Player, en_passant: Option<Square>) -> Self {
        let own = board.occupied(attacker);
        let occupied = board.all();
        let passing = en_passant.and_then(|square| {
            // Any pawn beside it will do to find the square that is pulled back.
            let pawn = Hand {
                square: square.flip_file(),
                own: Kind::Pawn,
                partner: None,
            };
            let passed = pulled_back(en_passant, attacker, pawn, square)?;
            own.has(passed).then_some((square, passed))
        });
        let unions = board.unions() | passing.map_or(BitBoard::EMPTY, |(square, _)| square.bitboard());
        let moved = passing.map_or(occupied, |(square, passed)| {
            (occupied - passed.bitboard()) | square.bitboard()
        });
        Self {
            board,
            attacker,
            occupied: [occupied, moved],
            unions,
            passing,
            hands: [0; 64],
            left: [0; 64],
            open: BitBoard::EMPTY,
            struck: BitBoard::EMPTY,
        }
    }

    /// Pieces of these types may come to be in the hand over `square`.
    fn arrive(&mut self, square: Square, kinds: Kinds) {
        let hands = &mut self.hands[square as usize];
        if *hands | kinds != *hands {
            *hands |= kinds;
            self.open |= square.bitboard();
        }
    }

    /// Follows the hands over a square that have not been followed yet.
    fn leave(&mut self, square: Square) {
        let fresh = self.hands[square as usize] & !self.left[square as usize];
        self.left[square as usize] |= fresh;
        for kind in CHAINING.into_iter().filter(|&kind| fresh & bit(kind) != 0) {
            let [before, after] = self
                .occupied
                .map(|occupied| strikes(kind, square, self.attacker, occupied));
            self.struck |= before | after;
            for target in (before | after) & self.unions {
                let stays = if is_promotion(self.attacker, kind, target) {
                    PROMOTIONS
                } else {
                    bit(kind)
                };
                self.arrive(target, stays | self.standing(target));
            }
        }
    }

    /// The type that stands in a union at first.
    fn standing(&self, square: Square) -> Kinds {
        let from = match self.passing {
            Some((target, passed)) if target == square => passed,
            _ => square,
        };
        self.board.kind_at(self.attacker, from).map_or(0, bit)
    }
}

const fn bit(kind: Kind) -> Kinds {
    1 << kind as u8
}
