//! Positions that could still be repeated: those since the last irreversible move.

use cozy_chess::{Board, Color, Piece, Rank, Square, get_pawn_attacks};

/// Keys of the positions since the last irreversible move (a capture, a pawn move, the loss of a castling right), without
/// the present one. There are at most a hundred, because of the fifty-move rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    keys: Vec<u64>,
    /// True if the oldest position (the present one, if `keys` is empty) has an en-passant square on which nothing can
    /// capture. FIDE's rules ignore such a square; dlchess' planes and the board's hash do not.
    idle_en_passant: bool,
}

impl History {
    /// Returns the history of a game that begins with this board.
    pub(super) fn beginning_at(board: &Board) -> Self {
        Self {
            keys: Vec::new(),
            idle_en_passant: has_idle_en_passant(board),
        }
    }

    /// Returns the key of `board`, the present position. Two positions have the same key if and only if the same moves are
    /// possible in them, but for collisions of 64-bit hashes.
    pub(super) fn key(&self, board: &Board) -> u64 {
        if self.keys.is_empty() && self.idle_en_passant {
            board.hash_without_ep()
        } else {
            board.hash()
        }
    }

    /// Adds a move from the position with the key `before` to `board`.
    pub(super) fn push(&mut self, before: u64, board: &Board, irreversible: bool) {
        if irreversible {
            self.keys.clear();
            self.idle_en_passant = has_idle_en_passant(board);
        } else {
            self.keys.push(before);
        }
    }

    /// Returns the number of times that `board`, the present position, occurred before, by FIDE's rules.
    pub(super) fn occurrences(&self, board: &Board) -> u32 {
        self.matches(board).count() as u32
    }

    /// Returns the number of times that `board`, the present position, occurred before, as dlchess counts: a position
    /// after a double step equals no later one, even if no pawn can capture en passant.
    pub(super) fn occurrences_with_idle_en_passant(&self, board: &Board) -> u32 {
        self.matches(board)
            .filter(|&at| at > 0 || !self.idle_en_passant)
            .count() as u32
    }

    /// True if a position with the other player to move, which the next move can recreate, occurred twice.
    pub(super) fn has_pair(&self) -> bool {
        let mut earlier = self.keys.iter().rev().skip(2).step_by(2);
        while let Some(key) = earlier.next() {
            if earlier.clone().any(|other| other == key) {
                return true;
            }
        }
        false
    }

    /// Returns the places of the present position in `keys`. Only every second position has the same player to move, and
    /// at least two moves of each side are needed to repeat a position.
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

/// Returns the square that a pawn's double step has just passed over. `None` if the last move was another one.
pub(super) fn en_passant_square(board: &Board) -> Option<Square> {
    let rank = match board.side_to_move() {
        Color::White => Rank::Sixth,
        Color::Black => Rank::Third,
    };
    board.en_passant().map(|file| Square::new(file, rank))
}

/// True if the board has an en-passant square, but no legal capture on it.
fn has_idle_en_passant(board: &Board) -> bool {
    let Some(square) = en_passant_square(board) else {
        return false;
    };
    let mover = board.side_to_move();
    let capturers = get_pawn_attacks(square, !mover) & board.colored_pieces(mover, Piece::Pawn);
    !board.generate_moves_for(capturers, |moves| moves.to.has(square))
}
