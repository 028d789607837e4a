//! Checks that a turn can be completed. With `dead_end = "forbid"`, only actions that pass this check are offered.
//!
//! The check is a depth-first search over the states of the turn. Nearly always the first state has a placement that ends
//! the turn, so that nothing is searched. The search visits at most [`MAX_STATES`] distinct states; a turn that needs more
//! counts as one that cannot be completed. The order of the search is fixed, and the states visited after an action are
//! among those visited before it. So an offered action never leads to a state without one.

use cozy_chess::BitBoard;

use super::{
    action::Act,
    apply::pulled_back,
    digest::{Digest, Seen},
    legal,
    piece::Kind,
    position::{Position, RequiredAction},
};
use crate::Player;

/// Most distinct states of one turn that a search visits.
pub(super) const MAX_STATES: usize = 4096;

/// True if `mover` can complete the turn from `position`, which one of the turn's actions led to, without a state whose
/// digest is in `barred`.
pub(super) fn can_end(position: &Position, mover: Player, barred: &[Digest]) -> bool {
    let mut seen = Seen::new();
    let mut open = Vec::new();
    let mut next = Some(*position);
    while let Some(state) = next.take().or_else(|| open.pop()) {
        if is_over(&state, mover) {
            return true;
        }
        let digest = state.digest();
        if barred.contains(&digest) {
            continue;
        }
        if ends_at_once(&state) {
            return true;
        }
        if !seen.insert(digest) {
            continue;
        }
        if seen.len() >= MAX_STATES {
            return false;
        }
        push_successors(&state, &mut open);
    }
    false
}

fn is_over(state: &Position, mover: Player) -> bool {
    !state.is_running() || state.to_move != mover || state.required == RequiredAction::PromoteThenFinish
}

fn ends_at_once(state: &Position) -> bool {
    match (state.required, state.hand) {
        (RequiredAction::Place, Some(hand)) => !ends_turn(state, legal::places(state, hand)).is_empty(),
        _ => false,
    }
}

/// Pushes the states after each action, so that the state of the lowest action number is popped first.
fn push_successors(state: &Position, open: &mut Vec<Position>) {
    let first = open.len();
    legal::plain(state).for_each(|act: Act| {
        let mut next = *state;
        next.apply(act);
        open.push(next);
    });
    if let Some(added) = open.get_mut(first..) {
        added.reverse();
    }
}

/// Returns the targets of the hand after which the hand is empty.
pub(super) fn ends_turn(position: &Position, targets: BitBoard) -> BitBoard {
    let Some(hand) = position.hand else {
        return BitBoard::EMPTY;
    };
    if hand.partner.is_some() || hand.own == Kind::King {
        return targets;
    }
    let own = position.board.occupied(position.to_move);
    let mut ending = targets - own;
    if let Some(square) = position.en_passant.filter(|&square| ending.has(square)) {
        let passed = pulled_back(position.en_passant, position.to_move, hand, square);
        if passed.is_some_and(|passed| own.has(passed)) {
            ending -= square.bitboard();
        }
    }
    ending
}
