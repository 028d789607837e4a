//! The positions that could still be repeated: those since the last irreversible move.

use cozy_chess::{Board, Color, Piece, Rank, Square, get_pawn_attacks};

/// Keys of the earlier positions since the last irreversible move (a capture, a pawn's move, the loss of a castling
/// right), the present one not among them. The fifty-move rule bounds it to a hundred.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    keys: Vec<u64>,
    /// The oldest position of the stretch (the present one where there is none earlier) was reached by a pawn's double
    /// step that nothing can capture en passant. By FIDE's rules its en-passant square means nothing; in dlchess'
    /// planes it does, and in the board's hash.
    idle_en_passant: bool,
}

impl History {
    /// The history of a board without a past.
    pub(super) fn beginning_at(board: &Board) -> Self {
        Self {
            keys: Vec::new(),
            idle_en_passant: has_idle_en_passant(board),
        }
    }

    /// The key by which `board`, the present position, is found again: two positions have the same one exactly if the
    /// same moves are possible in them (but for chance collisions of 64-bit hashes).
    pub(super) fn key(&self, board: &Board) -> u64 {
        if self.keys.is_empty() && self.idle_en_passant {
            board.hash_without_ep()
        } else {
            board.hash()
        }
    }

    /// Takes note of a move from the position with the key `before` to `board`.
    pub(super) fn push(&mut self, before: u64, board: &Board, irreversible: bool) {
        if irreversible {
            self.keys.clear();
            self.idle_en_passant = has_idle_en_passant(board);
        } else {
            self.keys.push(before);
        }
    }

    /// How often `board`, the present position, occurred before.
    pub(super) fn occurrences(&self, board: &Board) -> u32 {
        self.matches(board).count() as u32
    }

    /// The same as dlchess counts it: a position after a double step equals no later one, whether or not the pawn could
    /// have been captured.
    pub(super) fn occurrences_with_idle_en_passant(&self, board: &Board) -> u32 {
        self.matches(board)
            .filter(|&at| at > 0 || !self.idle_en_passant)
            .count() as u32
    }

    /// Where in the history the present position stands. The player to move must be the same, and two moves by each
    /// side are the least that leads back.
    fn matches(&self, board: &Board) -> impl Iterator<Item = usize> {
        let (key, count) = (self.key(board), self.keys.len());
        (4..=count)
            .step_by(2)
            .map(move |back| count - back)
            .filter(move |&at| self.keys.get(at) == Some(&key))
    }
}

impl Clone for History {
    fn clone(&self) -> Self {
        Self {
            keys: self.keys.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, source: &Self) {
        self.keys.clone_from(&source.keys);
        self.idle_en_passant = source.idle_en_passant;
    }
}

/// The square that a pawn's double step has just passed over.
pub(super) fn en_passant_square(board: &Board) -> Option<Square> {
    let rank = match board.side_to_move() {
        Color::White => Rank::Sixth,
        Color::Black => Rank::Third,
    };
    board.en_passant().map(|file| Square::new(file, rank))
}

fn has_idle_en_passant(board: &Board) -> bool {
    let Some(square) = en_passant_square(board) else {
        return false;
    };
    let mover = board.side_to_move();
    let capturers = get_pawn_attacks(square, !mover) & board.colored_pieces(mover, Piece::Pawn);
    !board.generate_moves_for(capturers, |moves| moves.to.has(square))
}
