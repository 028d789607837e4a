//! Exact outcomes: of positions with few empty squares by an alpha-beta search of wins, draws and losses, of others by a disc that
//! ends the game with a win.

use std::cmp::Ordering;

use super::{
    Othello,
    board::{placements, turnable, turned},
};
use crate::{
    bits,
    discs::Discs,
    game::{KnownOutcome, Outcome},
};

/// Largest number of empty squares that is searched.
pub(super) const MOST_EMPTY: u32 = 8;
/// Corners, which are tried first.
const CORNERS: u64 = 0x8100_0000_0000_0081;

/// Returns the outcome of a position in which the game is not over, if few squares are empty or the next disc wins.
pub(super) fn known(state: &Othello) -> Option<KnownOutcome> {
    let Discs { own, other, to_move } = state.discs;
    let empty = (!(own | other)).count_ones();
    if empty > MOST_EMPTY {
        return wins_at_once(own, other, state.placements).then(|| KnownOutcome::win_at_once(to_move));
    }
    let outcome = match best(own, other, state.placements, -1, 1) {
        0 => Outcome::Draw,
        1.. => Outcome::Won(to_move),
        _ => Outcome::Won(to_move.other()),
    };
    // Each square can need a pass before it.
    Some(KnownOutcome {
        outcome,
        actions: 2 * empty.max(1),
    })
}

/// True if a disc of the owner of `own` on one of `open` ends the game with a win, e.g. because it turns all discs of the opponent.
fn wins_at_once(own: u64, other: u64, open: u64) -> bool {
    // A placement of the opponent next to discs that cannot be turned over is lost only if the disc is placed there.
    let lasting = placements(other & !turnable(own, other), own) & !other;
    let ends_won = |placed: u32| {
        let placed = 1 << placed;
        let flipped = turned(placed, own, other);
        let (own, other) = (own | flipped | placed, other & !flipped);
        let is_over = placements(other, own) == 0 && placements(own, other) == 0;
        is_over && own.count_ones() > other.count_ones()
    };
    lasting.count_ones() <= 1 && bits::squares(open).any(ends_won)
}

/// Returns the result for the owner of `own`, who is to act and may place a disc on any of `open`: 1 for a win, 0 for a
/// draw, -1 for a loss. Exact within the window from `alpha` to `beta`.
fn best(own: u64, other: u64, open: u64, mut alpha: i8, beta: i8) -> i8 {
    if open == 0 {
        let answers = placements(other, own);
        return if answers == 0 {
            match own.count_ones().cmp(&other.count_ones()) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }
        } else {
            -best(other, own, answers, -beta, -alpha)
        };
    }
    for placed in bits::squares(open & CORNERS).chain(bits::squares(open & !CORNERS)) {
        let placed = 1 << placed;
        let flipped = turned(placed, own, other);
        let (own, other) = (other & !flipped, own | flipped | placed);
        alpha = alpha.max(-best(own, other, placements(own, other), -beta, -alpha));
        if alpha >= beta {
            break;
        }
    }
    alpha
}
