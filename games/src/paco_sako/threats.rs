//! Squares that a colour threatens, chains included. Castling and "ŝako" (a threat to unite with the king) depend on them.
//!
//! A search follows the attacker's chains over distinct states: a piece placed on a union releases another one, which
//! threatens squares and can be placed in turn. Late in a game there can be millions of such states, nearly all of which
//! threaten no further square. So [`super::reach`] bounds the squares first, and the search (shortest chains first) ends
//! once it has found all squares of the bound.
//!
//! The search stops after [`MAX_STATES`] states (some tens of milliseconds); squares not found by then count as not
//! threatened. Castling, for which the result matters, stays far below the limit: in a million searches from random play
//! that favours unions and keeps its rights, the longest visited 3,045 states. Only boards on which nearly every piece is
//! united reach the limit (3 in 1,000 searches of such play); there `is_sako` may miss the longest chains.

use std::collections::VecDeque;

use cozy_chess::{BitBoard, Square, get_pawn_attacks};

use super::{
    apply::{is_promotion, land, pulled_back},
    board::Board,
    digest::{Digest, Seen, digest},
    movement::{attacks, targets},
    piece::{Kind, color},
    position::Hand,
    reach,
};
use crate::Player;

/// Most distinct chain states that one search visits.
pub(super) const MAX_STATES: usize = 1 << 18;

/// Returns all squares that `attacker` threatens, with the hands of both players empty.
pub(super) fn threatened(board: &Board, attacker: Player, en_passant: Option<Square>) -> BitBoard {
    Search::new(attacker).run(board, en_passant, BitBoard::FULL, false)
}

/// True if `attacker` threatens any of `squares`.
pub(super) fn threatens_any(
    board: &Board,
    attacker: Player,
    en_passant: Option<Square>,
    squares: BitBoard,
) -> bool {
    !Search::new(attacker)
        .run(board, en_passant, squares, true)
        .is_disjoint(squares)
}

/// State of a chain, with a single piece of the attacker in the hand.
#[derive(Clone, Copy)]
struct Chain {
    board: Board,
    en_passant: Option<Square>,
    hand: Hand,
}

impl Chain {
    /// Returns a digest that is unique among the chains of one search. The defender's pieces can be left out: they move
    /// only when the en-passant square is used.
    fn digest(&self, attacker: Player) -> Digest {
        let [a, b, c] = self.board.words(attacker);
        let hand = (self.hand.square as u64) << 4 | (self.hand.own as u64) << 1;
        digest([a, b, c, hand | u64::from(self.en_passant.is_some())])
    }
}

struct Search {
    attacker: Player,
    found: BitBoard,
    seen: Seen,
    open: VecDeque<Chain>,
}

impl Search {
    fn new(attacker: Player) -> Self {
        Self {
            attacker,
            found: BitBoard::EMPTY,
            seen: Seen::new(),
            open: VecDeque::new(),
        }
    }

    /// Returns the threatened squares. Those outside `wanted` may be missing. With `any`, the search ends at the first
    /// wanted one.
    fn run(mut self, board: &Board, en_passant: Option<Square>, wanted: BitBoard, any: bool) -> BitBoard {
        let is_enough = |found: BitBoard| any && !found.is_disjoint(wanted);
        let singles = board.occupied(self.attacker) - board.unions() - board.of(self.attacker, Kind::King);
        for square in singles {
            if let Some(kind) = board.kind_at(self.attacker, square) {
                self.found |= attacks(kind, square, self.attacker, board.all());
            }
        }
        for square in singles {
            if is_enough(self.found) {
                break;
            }
            let mut lifted = *board;
            let Some(own) = lifted.take(self.attacker, square) else {
                continue;
            };
            let start = Chain {
                board: lifted,
                en_passant,
                hand: Hand {
                    square,
                    own,
                    partner: None,
                },
            };
            let possible = reach::bound(&lifted, self.attacker, start.hand, en_passant) & wanted;
            if possible.is_subset(self.found) {
                continue;
            }
            self.follow(start, |found| possible.is_subset(found) || is_enough(found));
        }
        self.found
    }

    /// Follows all chains from one lifted piece until `is_done` returns true for the squares found.
    fn follow(&mut self, start: Chain, is_done: impl Fn(BitBoard) -> bool) {
        let attacker = self.attacker;
        let (found, seen, open) = (&mut self.found, &mut self.seen, &mut self.open);
        open.clear();
        let mut next = Some(start);
        while let Some(chain) = next.take().or_else(|| open.pop_front()) {
            if seen.len() >= MAX_STATES || is_done(*found) {
                return;
            }
            extend(&chain, attacker, &mut |next| {
                if seen.insert(next.digest(attacker)) {
                    *found |= attacks(next.hand.own, next.hand.square, attacker, next.board.all());
                    open.push_back(next);
                }
            });
        }
    }
}

/// Calls `visit` for every chain that is longer by one placement (and its promotion).
fn extend(chain: &Chain, attacker: Player, visit: &mut impl FnMut(Chain)) {
    let hand = chain.hand;
    let own = chain.board.occupied(attacker);
    let mut onto = targets(&chain.board, attacker, hand, chain.en_passant) & own;
    if let Some(square) = chain.en_passant.filter(|_| hand.own == Kind::Pawn) {
        let is_beside = get_pawn_attacks(hand.square, color(attacker)).has(square);
        let source = pulled_back(chain.en_passant, attacker, hand, square);
        if is_beside && source.is_some_and(|passed| own.has(passed)) {
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
            visit(next);
            continue;
        }
        for kind in Kind::PROMOTIONS {
            next.board.put(attacker, target, kind);
            visit(next);
        }
    }
}
