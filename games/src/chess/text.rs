//! Positions as FEN, moves in UCI notation. Both are checked when read.

use cozy_chess::{Board, Color, FenParseError, File, Move, Piece, Rank, Square, get_king_moves};

use super::{
    moves::{Step, UnderPromotion},
    row::LARGEST_CLOCK,
    state::Chess,
};
use crate::game::Action;

/// Error: a text in UCI notation is not a legal move of the position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UciError {
    /// The text is not two squares and at most one letter of a piece.
    #[error("{0:?} is not a move in UCI notation, e.g. e2e4, e1g1, e7e8q")]
    Form(String),
    /// The text is a move that is not legal in this position.
    #[error("{0} is not legal here")]
    Illegal(String),
}

impl Chess {
    /// Returns the action id of a legal move in UCI notation. Letters may be of either case, because some programs write `e7e8Q`.
    ///
    /// # Errors
    /// [`UciError`] if the text is not a move, or not a legal one.
    pub fn action_of_uci(&self, uci: &str) -> Result<Action, UciError> {
        let form = || UciError::Form(uci.chars().take(16).collect());
        let uci = uci.to_ascii_lowercase();
        let square = |range| uci.get(range).and_then(|name: &str| name.parse::<Square>().ok());
        let squares = square(0..2).zip(square(2..4));
        if squares.is_none() || !matches!(uci.get(4..), Some("" | "q" | "n" | "b" | "r")) {
            return Err(form());
        }
        let mut legal = Vec::new();
        self.moves(&mut legal);
        legal
            .into_iter()
            .find(|&action| self.uci(action) == uci)
            .ok_or(UciError::Illegal(uci))
    }

    /// Returns the action in UCI notation: `e2e4`, `e1g1` for castling, `e7e8q`. Ids that are not moves give `0000`.
    pub fn uci(&self, action: Action) -> String {
        let squares = Step::of(action).and_then(|step| {
            let square = |number: u32| Square::try_index(number as usize);
            Some((step.under, square(step.from)?, square(step.to)?))
        });
        let Some((under, from, to)) = squares else {
            return "0000".into();
        };
        let to_queen =
            matches!(to.rank(), Rank::First | Rank::Eighth) && self.board.pieces(Piece::Pawn).has(from);
        let promotion = (under.map(UnderPromotion::piece)).or(to_queen.then_some(Piece::Queen));
        Move { from, to, promotion }.to_string()
    }
}

/// Writes a position as a FEN.
pub(super) fn write_fen(state: &Chess) -> String {
    let fen = state.board.to_string();
    match fen.rsplitn(3, ' ').collect::<Vec<_>>()[..] {
        [number, _, rest] => format!("{rest} {} {number}", state.clock),
        _ => fen,
    }
}

/// Reads a FEN as programs write it: the move number, or both counters, may be missing, the move number may be 0, a byte-order
/// mark may be in front, and castling rights may be left over. Returns the board and the half-move clock, which may be above 100,
/// the largest value of the board's own clock.
///
/// # Errors
/// Sentence that says which field is wrong.
pub(super) fn read_fen(fen: &str) -> Result<(Board, u8), String> {
    let fields: Vec<&str> = fen.trim_start_matches('\u{feff}').split_whitespace().collect();
    let (&[placement, mover, castling, en_passant], counters) = fields
        .split_first_chunk::<4>()
        .filter(|(_, counters)| counters.len() <= 2)
        .ok_or_else(|| {
            format!(
                "a FEN has six fields (or four or five, without counters), not {}",
                fields.len()
            )
        })?;
    if placement.split('/').count() != 8 {
        return Err("the board has eight ranks".into());
    }
    let clock = counters.first().copied().unwrap_or("0");
    let clock: u8 = clock
        .parse()
        .ok()
        .filter(|&clock| clock <= LARGEST_CLOCK)
        .ok_or_else(|| format!("the half-move clock is a number up to {LARGEST_CLOCK}, not {clock:?}"))?;
    let board_clock = clock.min(100);
    let number = match counters.get(1).map(|number| number.trim_start_matches('0')) {
        None | Some("") => "1",
        Some(number) => number,
    };
    let board_with = |castling: &str, en_passant: &str| -> Result<Board, String> {
        let fen = format!("{placement} {mover} {castling} {en_passant} {board_clock} {number}");
        fen.parse().map_err(describe)
    };
    let castling = usable_rights(&board_with("-", "-")?, castling);
    let board = board_with(&castling, en_passant)?;
    // The board's own check allows kings next to each other.
    if get_king_moves(board.king(Color::White)).has(board.king(Color::Black)) {
        return Err("the kings are next to each other".into());
    }
    for color in Color::ALL {
        let rights = board.castle_rights(color);
        let usual =
            rights.short.is_none_or(|file| file == File::H) && rights.long.is_none_or(|file| file == File::A);
        let castles = rights.short.is_some() || rights.long.is_some();
        if !usual || (castles && board.king(color).file() != File::E) {
            return Err("castling needs the king on the e-file and the rooks in the corners".into());
        }
    }
    Ok((board, clock))
}

/// Returns castling rights without those whose king has left its first rank, or whose rook is missing: many programs never clear
/// them. Letters that name no right stay, for the board to refuse.
fn usable_rights(board: &Board, rights: &str) -> String {
    let is_usable = |letter: &char| {
        let color = match letter.is_ascii_uppercase() {
            true => Color::White,
            false => Color::Black,
        };
        let file = match letter.to_ascii_lowercase() {
            'k' => Some(File::H),
            'q' => Some(File::A),
            letter => File::try_from(letter).ok(),
        };
        let first = Rank::First.relative_to(color);
        file.is_none_or(|file| {
            let rooks = board.colored_pieces(color, Piece::Rook);
            board.king(color).rank() == first && rooks.has(Square::new(file, first))
        })
    };
    let usable: String = rights.chars().filter(is_usable).collect();
    match usable.as_str() {
        "" => "-".into(),
        _ => usable,
    }
}

fn describe(error: FenParseError) -> String {
    match error {
        FenParseError::InvalidBoard => "the board is not a position of chess (pieces, kings, checks)",
        FenParseError::InvalidSideToMove => "the side to move is neither w nor b",
        FenParseError::InvalidCastlingRights => "the castling rights do not fit the kings and rooks",
        FenParseError::InvalidEnPassant => "the en-passant square does not fit the pawns",
        FenParseError::InvalidHalfMoveClock => "the half-move clock is not a number up to 150",
        FenParseError::InvalidFullmoveNumber => "the move number is not a positive number",
        FenParseError::MissingField => "a field is missing",
        FenParseError::TooManyFields => "there are too many fields",
    }
    .into()
}
