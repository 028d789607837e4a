//! Moves in algebraic notation (FIDE's Appendix C): written in PGN's form by cozy-chess, read in the forms that people type.

use cozy_chess::{File, Move, Piece, Rank, Square, util::display_san_move};

use super::{legal, state::Chess};
use crate::game::Action;

/// Error: a text in algebraic notation does not name one legal move of the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SanError {
    /// The text is not a move.
    #[error("{0:?} is not a move in algebraic notation, e.g. e4, Nf3, exd5, O-O, e8=Q")]
    Form(String),
    /// The text is a move that is not legal in this position.
    #[error("{0} is not legal here")]
    Illegal(String),
    /// Several legal moves fit the text.
    #[error("{text} could be {}", .candidates.join(" or "))]
    Ambiguous {
        /// First characters of the text.
        text: String,
        /// Legal moves that fit, in full notation.
        candidates: Vec<String>,
    },
}

/// Parts of a move that a text gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// Castling on the queen's side, or on the king's side.
    Castling { is_long: bool },
    /// Another move, with the parts that the text names.
    Plain {
        piece: Piece,
        from_file: Option<File>,
        from_rank: Option<Rank>,
        to: Square,
        promotion: Option<Piece>,
    },
}

impl Chess {
    /// Returns the legal move in algebraic notation, with `+` for check or `#` for mate. An action that is not legal gives
    /// `--`, PGN's null move.
    pub fn san(&self, action: Action) -> String {
        legal::board_move(&self.board, action)
            .filter(|&chosen| self.board.is_legal(chosen))
            .map_or_else(
                || "--".into(),
                |chosen| display_san_move(&self.board, chosen).to_string(),
            )
    }

    /// Returns the legal move that a text in algebraic notation names. Signs of check, capture and comment may be missing
    /// or wrong, a promotion without a piece is to a queen, and castling may be written with zeros.
    ///
    /// # Errors
    /// [`SanError`] if no legal move fits, or several do.
    pub fn action_of_san(&self, text: &str) -> Result<Action, SanError> {
        let bare = text.trim().trim_end_matches(['+', '#', '!', '?']);
        let shown = || text.trim().chars().take(16).collect::<String>();
        let pattern = match bare {
            "O-O" | "0-0" | "o-o" => Pattern::Castling { is_long: false },
            "O-O-O" | "0-0-0" | "o-o-o" => Pattern::Castling { is_long: true },
            _ => read(bare).ok_or_else(|| SanError::Form(shown()))?,
        };
        let mut fitting = Vec::new();
        self.moves(&mut fitting);
        fitting.retain(|&action| {
            legal::board_move(&self.board, action).is_some_and(|chosen| self.fits(chosen, pattern))
        });
        match fitting[..] {
            [action] => Ok(action),
            [] => Err(SanError::Illegal(shown())),
            _ => Err(SanError::Ambiguous {
                text: shown(),
                candidates: fitting.iter().map(|&action| self.san(action)).collect(),
            }),
        }
    }

    /// True if a legal move has all that the pattern says.
    fn fits(&self, chosen: Move, pattern: Pattern) -> bool {
        // The board takes castling as the king's move onto its rook.
        let castles = self.board.colors(self.board.side_to_move()).has(chosen.to);
        match pattern {
            Pattern::Castling { is_long } => castles && is_long == (chosen.to < chosen.from),
            Pattern::Plain {
                piece,
                from_file,
                from_rank,
                to,
                promotion,
            } => {
                !castles
                    && self.board.piece_on(chosen.from) == Some(piece)
                    && chosen.to == to
                    && from_file.is_none_or(|file| file == chosen.from.file())
                    && from_rank.is_none_or(|rank| rank == chosen.from.rank())
                    && chosen.promotion == promotion.or(chosen.promotion.map(|_| Piece::Queen))
            }
        }
    }

    /// True if the player to act is in check.
    pub fn is_check(&self) -> bool {
        !self.board.checkers().is_empty()
    }

    /// Returns the FEN letter of the piece on a square, 0 (a1) to 63 (h8). `None` if the square is empty.
    pub fn piece_letter(&self, square: u32) -> Option<char> {
        let square = Square::try_index(square as usize)?;
        let letter = char::from(self.board.piece_on(square)?);
        Some(match self.board.color_on(square)? {
            cozy_chess::Color::White => letter.to_ascii_uppercase(),
            cozy_chess::Color::Black => letter,
        })
    }
}

/// Reads a move other than castling, from its end: promotion, target, rank and file of the start, piece.
fn read(text: &str) -> Option<Pattern> {
    let mut rest: Vec<char> = text.chars().filter(|&c| !"-:x=".contains(c)).collect();
    // A file, a rank and a piece are letters that differ, but for b: a lower-case b is a file, an upper-case B a bishop.
    let promotion = rest
        .pop_if(|c| c.is_ascii_alphabetic())
        .map(|letter| Piece::try_from(letter.to_ascii_lowercase()))
        .transpose()
        .ok()?;
    let to_rank = Rank::try_from(rest.pop()?).ok()?;
    let to = Square::new(File::try_from(rest.pop()?).ok()?, to_rank);
    let from_rank = rest.pop_if(|c| Rank::try_from(*c).is_ok());
    let from_file = rest.pop_if(|c| File::try_from(*c).is_ok());
    let piece = match rest[..] {
        [] => Piece::Pawn,
        [letter @ ('P' | 'N' | 'B' | 'R' | 'Q' | 'K')] => {
            Piece::try_from(letter.to_ascii_lowercase()).ok()?
        }
        _ => return None,
    };
    let promotes = !matches!(promotion, Some(Piece::Pawn | Piece::King));
    (promotes && (piece == Piece::Pawn || promotion.is_none())).then_some(Pattern::Plain {
        piece,
        from_file: from_file.and_then(|c| File::try_from(c).ok()),
        from_rank: from_rank.and_then(|c| Rank::try_from(c).ok()),
        to,
        promotion,
    })
}
