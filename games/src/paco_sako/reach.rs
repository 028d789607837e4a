//! Upper bound of the squares that chains can threaten, in time that does not grow with the number of chains.
//!
//! A chain does not change which squares are occupied (but for en passant). So the squares that a piece of some type can
//! reach from some square are fixed; only the pieces in the unions change. The bound ignores that a piece which arrives
//! somewhere has left another square: a union can release every type that could ever arrive there.

use cozy_chess::{BitBoard, Square};

use super::{
    apply::{is_promotion, pulled_back},
    board::Board,
    movement::attacks,
    piece::Kind,
    position::Hand,
};
use crate::Player;

/// Set of piece types: bit n is the type with number n.
type Kinds = u8;

/// Types that can take part in a chain: all but the king.
const CHAINING: [Kind; 5] = [Kind::Pawn, Kind::Rook, Kind::Knight, Kind::Bishop, Kind::Queen];
const PROMOTIONS: Kinds = bit(Kind::Rook) | bit(Kind::Knight) | bit(Kind::Bishop) | bit(Kind::Queen);

/// Returns the squares that include all those that chains of `attacker` starting with `hand` can threaten. `board` is
/// without the hand.
pub(super) fn bound(board: &Board, attacker: Player, hand: Hand, en_passant: Option<Square>) -> BitBoard {
    let mut walk = Walk::new(board, attacker, en_passant);
    walk.add_hands(hand.square, bit(hand.own));
    while let Some(square) = walk.open.next_square() {
        walk.open -= square.bitboard();
        walk.follow(square);
    }
    walk.attacked
}

struct Walk<'a> {
    board: &'a Board,
    attacker: Player,
    /// Occupied squares at first, and after an en-passant move of the chain (equal to the first if there can be none).
    occupied: [BitBoard; 2],
    /// Squares on which a chain can continue: the unions, and the en-passant square if a union is pulled back to it.
    unions: BitBoard,
    /// Square that becomes a union by en passant, and the square on which that union is before.
    passing: Option<(Square, Square)>,
    /// Types that can be in the hand, by square.
    hands: [Kinds; 64],
    /// Types whose moves have been followed, by square.
    followed: [Kinds; 64],
    /// Squares with types whose moves have not been followed.
    open: BitBoard,
    attacked: BitBoard,
}

impl<'a> Walk<'a> {
    fn new(board: &'a Board, attacker: Player, en_passant: Option<Square>) -> Self {
        let own = board.occupied(attacker);
        let occupied = board.all();
        let passing = en_passant.and_then(|square| {
            // A pawn on any other file finds the square that is pulled back.
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
            followed: [0; 64],
            open: BitBoard::EMPTY,
            attacked: BitBoard::EMPTY,
        }
    }

    /// Adds types that can be in the hand on `square`.
    fn add_hands(&mut self, square: Square, kinds: Kinds) {
        let hands = &mut self.hands[square as usize];
        if *hands | kinds != *hands {
            *hands |= kinds;
            self.open |= square.bitboard();
        }
    }

    /// Follows the moves of the types on a square that have not been followed.
    fn follow(&mut self, square: Square) {
        let fresh = self.hands[square as usize] & !self.followed[square as usize];
        self.followed[square as usize] |= fresh;
        for kind in CHAINING.into_iter().filter(|&kind| fresh & bit(kind) != 0) {
            let [before, after] = self
                .occupied
                .map(|occupied| attacks(kind, square, self.attacker, occupied));
            self.attacked |= before | after;
            for target in (before | after) & self.unions {
                let arriving = if is_promotion(self.attacker, kind, target) {
                    PROMOTIONS
                } else {
                    bit(kind)
                };
                self.add_hands(target, arriving | self.standing(target));
            }
        }
    }

    /// Returns the type of the attacker's piece that is in a union at first.
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
