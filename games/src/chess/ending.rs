//! End of a game of chess. Mate takes precedence over every draw.
//!
//! A draw that FIDE lets a player claim ends the game at once: the third occurrence of a position, or a hundred half-moves
//! without capture or pawn move. A position is dead if the material left cannot mate. Blocked positions with enough
//! material, in which nobody can mate either, are not detected.

use cozy_chess::{BitBoard, Move, Piece};

use super::state::Chess;
use crate::game::{Game, KnownOutcome, Outcome};

/// Number of half-moves without progress that ends the game as a draw.
const FIFTY_MOVES: u8 = 100;

/// Dark squares: a1 and the squares of its colour.
const DARK_SQUARES: BitBoard = BitBoard(0xaa55_aa55_aa55_aa55);

/// Returns the outcome of the game. `None` while it runs.
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

/// Returns a win in one action if one of the actions that the rules offer mates. The game is not over.
pub(super) fn mate_in_one(state: &Chess) -> Option<KnownOutcome> {
    let mates = |action: Move| {
        let is_offered = state.underpromotions || matches!(action.promotion, None | Some(Piece::Queen));
        if !is_offered {
            return false;
        }
        let mut board = state.board.clone();
        board.play_unchecked(action);
        !board.checkers().is_empty() && !board.generate_moves(|_| true)
    };
    let is_mate = state.board.generate_moves(|moves| moves.into_iter().any(mates));
    is_mate.then(|| KnownOutcome::win_at_once(state.to_move()))
}

/// True if an action ends the game as a draw by the third occurrence of a position or by the fifty-move rule. The game is not over.
pub(super) fn draw_in_one(state: &Chess) -> bool {
    if state.clock + 1 < FIFTY_MOVES && !state.history.has_pair() {
        return false;
    }
    let mut actions = Vec::new();
    state.legal_actions(&mut actions);
    let mut next = state.clone();
    actions.into_iter().any(|action| {
        next.clone_from(state);
        next.play_legal(action);
        next.outcome() == Some(Outcome::Draw)
    })
}

/// True if a rule makes the position a draw, unless it is mate. There may be moves left. Stalemate is not included.
pub(super) fn is_drawn(state: &Chess) -> bool {
    state.clock >= FIFTY_MOVES || lacks_material(state) || state.earlier_occurrences() >= 2
}

/// True if the pieces other than the kings cannot mate: none, one knight, or bishops that are all on squares of one
/// colour.
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
