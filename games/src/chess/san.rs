//! Moves in algebraic notation (FIDE's Appendix C): written in PGN's form, read in the forms that people type.

use std::fmt::Write as _;

use cozy_chess::{Color, File, Piece, Rank, Square};

use super::{
    moves::{Step, UnderPromotion},
    state::Chess,
};
use crate::game::{Action, Game};

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

/// Parts of a move that a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    piece: Piece,
    from_file: Option<File>,
    from_rank: Option<Rank>,
    to: Square,
    promotion: Option<Piece>,
}

impl Chess {
    /// Returns the legal move in algebraic notation, with `+` for check or `#` for mate. An action that is not legal gives
    /// `--`, PGN's null move.
    pub fn san(&self, action: Action) -> String {
        let mut legal = Vec::new();
        self.moves(&mut legal);
        let Some(moved) = self
            .piece_move(action)
            .filter(|_| legal.binary_search(&action).is_ok())
        else {
            return "--".into();
        };
        let mut text = self.castling(&moved).map_or_else(
            || self.plain_san(&moved, action, &legal),
            |castling| castling.to_owned(),
        );
        let mut after = self.clone();
        after.play_legal(action);
        if !after.board.checkers().is_empty() {
            text.push(if after.board.generate_moves(|_| true) {
                '+'
            } else {
                '#'
            });
        }
        text
    }

    /// Returns the legal move that a text in algebraic notation names. Signs of check, capture and comment may be missing
    /// or wrong, a promotion without a piece is to a queen, and castling may be written with zeros.
    ///
    /// # Errors
    /// [`SanError`] if no legal move fits, or several do.
    pub fn action_of_san(&self, text: &str) -> Result<Action, SanError> {
        let mut legal = Vec::new();
        self.moves(&mut legal);
        let bare = text.trim().trim_end_matches(['+', '#', '!', '?']);
        let shown = || text.trim().chars().take(16).collect::<String>();
        let fitting: Vec<Action> = match bare {
            "O-O" | "0-0" | "o-o" | "O-O-O" | "0-0-0" | "o-o-o" => {
                let name = if bare.len() == 3 { "O-O" } else { "O-O-O" };
                let castles = |moved: &PieceMove| self.castling(moved) == Some(name);
                self.select(&legal, castles)
            }
            _ => {
                let pattern = read(bare).ok_or_else(|| SanError::Form(shown()))?;
                self.select(&legal, |moved| {
                    moved.piece == pattern.piece
                        && moved.to == pattern.to
                        && pattern.from_file.is_none_or(|file| file == moved.from.file())
                        && pattern.from_rank.is_none_or(|rank| rank == moved.from.rank())
                        && moved.promotion
                            == pattern
                                .promotion
                                .or(moved.promotion.is_some().then_some(Piece::Queen))
                        && self.castling(moved).is_none()
                })
            }
        };
        match fitting[..] {
            [action] => Ok(action),
            [] => Err(SanError::Illegal(shown())),
            _ => Err(SanError::Ambiguous {
                text: shown(),
                candidates: fitting.iter().map(|&action| self.san(action)).collect(),
            }),
        }
    }

    /// Returns the legal actions whose moves fit.
    fn select(&self, legal: &[Action], fits: impl Fn(&PieceMove) -> bool) -> Vec<Action> {
        let is_selected = |action: &Action| self.piece_move(*action).is_some_and(|moved| fits(&moved));
        legal.iter().copied().filter(is_selected).collect()
    }

    /// Returns the move of an action with its piece. `None` for ids that stand for no move, and for moves from an empty
    /// square.
    fn piece_move(&self, action: Action) -> Option<PieceMove> {
        let step = Step::of(action)?;
        let from = Square::try_index(step.from as usize)?;
        let to = Square::try_index(step.to as usize)?;
        let piece = self.board.piece_on(from)?;
        let promotion = match step.under {
            Some(UnderPromotion::Knight) => Some(Piece::Knight),
            Some(UnderPromotion::Bishop) => Some(Piece::Bishop),
            Some(UnderPromotion::Rook) => Some(Piece::Rook),
            None if piece == Piece::Pawn && matches!(to.rank(), Rank::First | Rank::Eighth) => {
                Some(Piece::Queen)
            }
            None => None,
        };
        Some(PieceMove {
            piece,
            from,
            to,
            promotion,
        })
    }

    /// Returns the notation of a castling move. `None` for other moves.
    fn castling(&self, moved: &PieceMove) -> Option<&'static str> {
        let files = (moved.from.file() as usize).abs_diff(moved.to.file() as usize);
        match (moved.piece, files, moved.to.file()) {
            (Piece::King, 2, File::G) => Some("O-O"),
            (Piece::King, 2, File::C) => Some("O-O-O"),
            _ => None,
        }
    }

    /// Returns the notation of a move other than castling, without signs of check.
    fn plain_san(&self, moved: &PieceMove, action: Action, legal: &[Action]) -> String {
        let mut text = String::with_capacity(8);
        let captures = self.board.color_on(moved.to).is_some()
            || (moved.piece == Piece::Pawn && moved.from.file() != moved.to.file());
        if moved.piece == Piece::Pawn {
            if captures {
                let _ = write!(text, "{}", moved.from.file());
            }
        } else {
            text.push(letter(moved.piece));
            let rivals: Vec<Square> = legal
                .iter()
                .filter(|&&other| other != action)
                .filter_map(|&other| self.piece_move(other))
                .filter(|other| other.piece == moved.piece && other.to == moved.to)
                .map(|other| other.from)
                .collect();
            let shares_file = rivals.iter().any(|rival| rival.file() == moved.from.file());
            let shares_rank = rivals.iter().any(|rival| rival.rank() == moved.from.rank());
            if !rivals.is_empty() && (!shares_file || shares_rank) {
                let _ = write!(text, "{}", moved.from.file());
            }
            if shares_file {
                let _ = write!(text, "{}", moved.from.rank());
            }
        }
        if captures {
            text.push('x');
        }
        let _ = write!(text, "{}", moved.to);
        if let Some(piece) = moved.promotion {
            text.push('=');
            text.push(letter(piece));
        }
        text
    }

    /// True if the player to act is in check.
    pub fn is_check(&self) -> bool {
        !self.board.checkers().is_empty()
    }

    /// Returns the FEN letter of the piece on a square, 0 (a1) to 63 (h8). `None` if the square is empty.
    pub fn piece_letter(&self, square: u32) -> Option<char> {
        let square = Square::try_index(square as usize)?;
        let letter = match self.board.piece_on(square)? {
            Piece::Pawn => 'P',
            piece => letter(piece),
        };
        Some(if self.board.color_on(square) == Some(Color::White) {
            letter
        } else {
            letter.to_ascii_lowercase()
        })
    }
}

/// A move with its piece.
#[derive(Clone, Copy, Debug)]
struct PieceMove {
    piece: Piece,
    from: Square,
    to: Square,
    promotion: Option<Piece>,
}

const fn letter(piece: Piece) -> char {
    match piece {
        Piece::Pawn => 'P',
        Piece::Knight => 'N',
        Piece::Bishop => 'B',
        Piece::Rook => 'R',
        Piece::Queen => 'Q',
        Piece::King => 'K',
    }
}

fn piece_of(letter: char) -> Option<Piece> {
    Some(match letter {
        'N' | 'n' => Piece::Knight,
        'B' | 'b' => Piece::Bishop,
        'R' | 'r' => Piece::Rook,
        'Q' | 'q' => Piece::Queen,
        'K' | 'k' => Piece::King,
        _ => return None,
    })
}

/// Reads a move other than castling, from its end: promotion, target, `x`, rank and file of the start, piece.
fn read(text: &str) -> Option<Pattern> {
    let mut rest: Vec<char> = text.chars().filter(|&c| c != '-' && c != ':').collect();
    let mut promotion = None;
    if let Some(piece) = rest.last().copied().and_then(piece_of)
        && rest.len() > 2
        && piece != Piece::King
    {
        promotion = Some(piece);
        rest.pop();
        if rest.last() == Some(&'=') {
            rest.pop();
        }
    }
    let rank = |c: char| Rank::try_index(c.to_digit(9)?.checked_sub(1)? as usize);
    let file = |c: char| {
        ('a'..='h')
            .contains(&c)
            .then(|| File::index(c as usize - 'a' as usize))
    };
    let to_rank = rank(rest.pop()?)?;
    let to = Square::new(file(rest.pop()?)?, to_rank);
    if rest.last() == Some(&'x') {
        rest.pop();
    }
    let mut from_rank = None;
    if let Some(found) = rest.last().copied().and_then(rank) {
        from_rank = Some(found);
        rest.pop();
    }
    let mut from_file = None;
    // A lower-case b is a file, an upper-case B a bishop.
    if let Some(found) = rest.last().copied().and_then(file) {
        from_file = Some(found);
        rest.pop();
    }
    let piece = match rest[..] {
        [] | ['P'] => Piece::Pawn,
        [letter @ ('N' | 'B' | 'R' | 'Q' | 'K')] => piece_of(letter)?,
        _ => return None,
    };
    (piece == Piece::Pawn || promotion.is_none()).then_some(Pattern {
        piece,
        from_file,
        from_rank,
        to,
        promotion,
    })
}
