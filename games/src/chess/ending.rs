//! How a game of chess ends. Mate comes before every draw.
//!
//! Draws are taken as soon as FIDE lets a player claim them: the third occurrence of a position, a hundred
//! half-moves without capture or pawn's move. A position is dead if no material is left that could mate;
//! blocked positions, in which nobody can mate though the material would do, are not looked for.

use cozy_chess::{BitBoard, Piece};

use super::Chess;
use crate::game::{Game, Outcome};

/// Half-moves without progress that make a draw.
const FIFTY_MOVES: u8 = 100;

/// a1 and every other square of its colour.
const DARK_SQUARES: BitBoard = BitBoard(0xaa55_aa55_aa55_aa55);

/// How the game ended, if it has.
pub(super) fn outcome(state: &Chess) -> Option<Outcome> {
    let can_move = state.board.generate_moves(|_| true);
    if can_move {
        return is_drawn(state).then_some(Outcome::Draw);
    }
    Some(if state.board.checkers().is_empty() {
        Outcome::Draw
    } else {
        Outcome::Won(state.to_move().other())
    })
}

/// Whether a draw ends the game if there is no mate. There may be moves left.
pub(super) fn is_drawn(state: &Chess) -> bool {
    state.clock >= FIFTY_MOVES || lacks_material(state) || state.earlier_occurrences() >= 2
}

/// Kings alone, one knight or bishop beside them, or only bishops that all stand on squares of one colour.
fn lacks_material(state: &Chess) -> bool {
    let pieces = |piece| state.board.pieces(piece);
    if !(pieces(Piece::Pawn) | pieces(Piece::Rook) | pieces(Piece::Queen)).is_empty() {
        return false;
    }
    let (knights, bishops) = (pieces(Piece::Knight), pieces(Piece::Bishop));
    match knights.len() {
        0 => bishops.is_disjoint(DARK_SQUARES) || bishops.is_subset(DARK_SQUARES),
        1 => bishops.is_empty(),
        _ => false,
    }
}
