//! Legal actions of a board, and the moves that they mean.

use cozy_chess::{BitBoard, Board, File, Move, Piece, Rank, Square};

use super::moves::{Step, UnderPromotion};
use crate::{bits, game::Action};

const LAST_RANKS: BitBoard = BitBoard(Rank::First.bitboard().0 | Rank::Eighth.bitboard().0);

/// Replaces `actions` by the legal actions, ascending. Without `underpromotions`, pawns are promoted to queens only.
pub(super) fn collect(board: &Board, underpromotions: bool, actions: &mut Vec<Action>) {
    let own_pieces = board.colors(board.side_to_move());
    // The board gives moves by type of piece. Collecting them by square makes sorting unnecessary.
    let mut targets = [0; 64];
    let mut movers = 0;
    board.generate_moves(|piece_moves| {
        let from = piece_moves.from as u32;
        let mut to = piece_moves.to & !own_pieces;
        // The board gives castling as the king's move onto its rook.
        for rook in piece_moves.to & own_pieces {
            to |= castling_target(piece_moves.from, rook).bitboard();
        }
        targets[piece_moves.from as usize] |= to.0;
        movers |= 1 << from;
        false
    });
    actions.clear();
    for from in bits::squares(movers) {
        actions.extend(bits::squares(targets[from as usize & 63]).map(|to| 64 * from + to));
    }
    if underpromotions {
        let pawns = movers & board.pieces(Piece::Pawn).0;
        for from in bits::squares(pawns) {
            for to in bits::squares(targets[from as usize & 63] & LAST_RANKS.0) {
                actions.extend(UnderPromotion::ALL.map(|under| {
                    Step {
                        from,
                        to,
                        under: Some(under),
                    }
                    .action()
                }));
            }
        }
    }
}

/// Returns the destination of the king on `from` when it castles with `rook`.
fn castling_target(from: Square, rook: Square) -> Square {
    let file = if rook > from { File::G } else { File::C };
    Square::new(file, from.rank())
}

/// Returns the move that an action means on this board. It need not be legal. `None` for ids that are not moves,
/// and for moves that do not start on a piece of the player to move.
pub(super) fn board_move(board: &Board, action: Action) -> Option<Move> {
    let step = Step::of(action)?;
    let from = Square::try_index(step.from as usize)?;
    let to = Square::try_index(step.to as usize)?;
    let mover = board.side_to_move();
    if !board.colors(mover).has(from) {
        return None;
    }
    let piece = board.piece_on(from)?;
    let to_queen = piece == Piece::Pawn && LAST_RANKS.has(to);
    let promotion = (step.under.map(UnderPromotion::piece)).or(to_queen.then_some(Piece::Queen));
    if piece == Piece::King && step.from.abs_diff(step.to) == 2 {
        // The board takes castling as the king's move onto its rook.
        let rights = board.castle_rights(mover);
        let rook = if to > from { rights.short } else { rights.long }?;
        return Some(Move {
            from,
            to: Square::new(rook, from.rank()),
            promotion,
        });
    }
    if piece == Piece::King && board.colors(mover).has(to) {
        return None;
    }
    Some(Move { from, to, promotion })
}
