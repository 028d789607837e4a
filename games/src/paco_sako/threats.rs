//! Which squares a colour threatens, chains included: what castling asks, and what "ŝako" means.
//!
//! The attacker's chains are followed over distinct states: a piece placed on a union releases the
//! one that stood there, which threatens (and may be placed) in turn. Their number has no useful bound
//! (ten thousands occur), so the search gives up after [`MAX_STATES`] and then counts what it has not seen
//! as not threatened; no recorded game comes near that.

use cozy_chess::{BitBoard, Square, get_pawn_attacks};

use super::{
    apply::{is_promotion, land, pulled_back},
    board::Board,
    movement::{strikes, targets},
    piece::Kind,
    position::{Hand, color},
    seen::Seen,
};
use crate::Player;

/// Distinct chain states that one question may visit.
pub(super) const MAX_STATES: usize = 1 << 20;

/// Every square that `attacker` threatens, with the hands of both players empty.
pub(super) fn threatened(board: &Board, attacker: Player, en_passant: Option<Square>) -> BitBoard {
    explore(board, attacker, en_passant, BitBoard::FULL)
}

/// Whether `attacker` threatens any of `squares`.
pub(super) fn threatens_any(
    board: &Board,
    attacker: Player,
    en_passant: Option<Square>,
    squares: BitBoard,
) -> bool {
    !explore(board, attacker, en_passant, squares).is_disjoint(squares)
}

/// A chain of the attacker's with a single piece in the hand.
#[derive(Clone, Copy)]
struct Chain {
    board: Board,
    en_passant: Option<Square>,
    hand: Hand,
}

/// What tells two chains of one question apart: the defender's pieces move only with the en-passant square.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key([u64; 3], u16);

impl Chain {
    fn key(&self, attacker: Player) -> Key {
        let hand = (self.hand.square as u16) << 4 | (self.hand.own as u16) << 1;
        Key(
            self.board.words(attacker),
            hand | u16::from(self.en_passant.is_some()),
        )
    }
}

/// Collects threatened squares; stops early once one of `wanted` is found, unless all squares are wanted.
fn explore(board: &Board, attacker: Player, en_passant: Option<Square>, wanted: BitBoard) -> BitBoard {
    let is_done = |found: BitBoard| wanted != BitBoard::FULL && !found.is_disjoint(wanted);
    let singles = board.occupied(attacker) - board.unions() - board.of(attacker, Kind::King);
    let mut found = BitBoard::EMPTY;
    for square in singles {
        if let Some(kind) = board.kind_at(attacker, square) {
            found |= strikes(kind, square, attacker, board.all());
        }
    }
    let mut seen = Seen::new();
    let mut open = Vec::new();
    for square in singles {
        if is_done(found) {
            return found;
        }
        let mut lifted = *board;
        let Some(own) = lifted.take(attacker, square) else {
            continue;
        };
        let mut next = Some(Chain {
            board: lifted,
            en_passant,
            hand: Hand {
                square,
                own,
                partner: None,
            },
        });
        while let Some(chain) = next.take().or_else(|| open.pop()) {
            if seen.len() >= MAX_STATES {
                return found;
            }
            extend(&chain, attacker, &mut |next| {
                if seen.insert(next.key(attacker)) {
                    found |= strikes(next.hand.own, next.hand.square, attacker, next.board.all());
                    open.push(next);
                }
            });
            if is_done(found) {
                return found;
            }
        }
    }
    found
}

/// Gives every chain that is one placement (and promotion) longer.
fn extend(chain: &Chain, attacker: Player, give: &mut impl FnMut(Chain)) {
    let hand = chain.hand;
    let own = chain.board.occupied(attacker);
    let mut onto = targets(&chain.board, attacker, hand, chain.en_passant) & chain.board.unions() & own;
    if let Some(square) = chain.en_passant.filter(|_| hand.own == Kind::Pawn) {
        let is_beside = get_pawn_attacks(hand.square, color(attacker)).has(square);
        let brings = pulled_back(chain.en_passant, attacker, hand, square);
        if is_beside && brings.is_some_and(|passed| own.has(passed)) {
            onto |= square.bitboard();
        }
    }
    for target in onto {
        let mut next = *chain;
        let Some(own) = land(&mut next.board, &mut next.en_passant, attacker, hand, target) else {
            continue;
        };
        if own == Kind::King {
            continue;
        }
        next.hand = Hand {
            square: target,
            own,
            partner: None,
        };
        if !is_promotion(attacker, hand.own, target) {
            give(next);
            continue;
        }
        for kind in Kind::PROMOTIONS {
            next.board.put(attacker, target, kind);
            give(next);
        }
    }
}
