//! Reads and writes the original project's FEN dialect.
//!
//! `<rows>[^<square><letter>] <w|b> <no-progress counter> <castling rook files> <en passant> -`, where `^` is followed by
//! the hand. One letter is a union. The dialect has no form for pending promotions, results and history.
//!
//! The original reader drops all castling rights of a board without both kings. This one keeps them, because the recorded
//! traces on such boards need them; the file of a missing king is e.

use std::fmt::Write;

use cozy_chess::{File, Rank, Square};

use super::{
    board::Board,
    castling::{Castling, RIGHTS},
    piece::Kind,
    position::{Hand, Position, RequiredAction, Victory},
};
use crate::Player;

/// Position that a game usually begins in.
pub(super) const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w 0 AHah - -";

/// Largest no-progress counter of a regular game.
const MAX_COUNTER: u8 = 100;

/// Letters of unions with their white and black piece. The upper-case letter has the colours exchanged.
const UNIONS: [(char, Kind, Kind); 20] = [
    ('a', Kind::Pawn, Kind::Pawn),
    ('c', Kind::Rook, Kind::Pawn),
    ('d', Kind::Knight, Kind::Pawn),
    ('e', Kind::Bishop, Kind::Pawn),
    ('f', Kind::Queen, Kind::Pawn),
    ('g', Kind::King, Kind::Pawn),
    ('h', Kind::Rook, Kind::Rook),
    ('i', Kind::Knight, Kind::Rook),
    ('j', Kind::Bishop, Kind::Rook),
    ('l', Kind::Queen, Kind::Rook),
    ('m', Kind::King, Kind::Rook),
    ('o', Kind::Knight, Kind::Knight),
    ('s', Kind::Bishop, Kind::Knight),
    ('t', Kind::Queen, Kind::Knight),
    ('u', Kind::King, Kind::Knight),
    ('v', Kind::Bishop, Kind::Bishop),
    ('w', Kind::Queen, Kind::Bishop),
    ('x', Kind::King, Kind::Bishop),
    ('y', Kind::Queen, Kind::Queen),
    ('z', Kind::King, Kind::Queen),
];

/// Reads a FEN.
///
/// # Errors
/// Sentence that says which field is wrong.
pub(super) fn read(text: &str) -> Result<Position, String> {
    // A file's first line may begin with a byte-order mark.
    let fields: Vec<&str> = text.trim_start_matches('\u{feff}').split_whitespace().collect();
    let &[placement, side, counter, castling, en_passant, union_move] = fields.as_slice() else {
        return Err(format!(
            "a FEN has six fields (board, side, no-progress counter, castling, en passant, -), not {}",
            fields.len()
        ));
    };
    let to_move = match side {
        "w" => Player::First,
        "b" => Player::Second,
        _ => return Err(format!("the side to move is {side:?} instead of w or b")),
    };
    let (rows, hand) = match placement.split_once('^') {
        Some((rows, hand)) => (rows, Some(read_hand(hand, to_move)?)),
        None => (placement, None),
    };
    let board = read_rows(rows)?;
    let no_progress = counter.parse().ok().filter(|&counter| counter <= MAX_COUNTER);
    if union_move != "-" {
        return Err(format!("the sixth field is {union_move:?} instead of -"));
    }
    Ok(Position {
        board,
        hand,
        en_passant: read_en_passant(en_passant)?,
        promotion: None,
        castling: read_castling(castling, &board, hand, to_move)?,
        to_move,
        required: if hand.is_some() {
            RequiredAction::Place
        } else {
            RequiredAction::Lift
        },
        victory: Victory::Running,
        no_progress: no_progress.ok_or_else(|| {
            format!("the no-progress counter is {counter:?} instead of a number from 0 to {MAX_COUNTER}")
        })?,
    })
}

fn read_rows(text: &str) -> Result<Board, String> {
    let rows: Vec<&str> = text.split('/').collect();
    if rows.len() != Rank::NUM {
        return Err(format!("the board has {} rows instead of eight", rows.len()));
    }
    let mut board = Board::EMPTY;
    for (row, rank) in rows.into_iter().zip(Rank::ALL.into_iter().rev()) {
        let mut squares = 0;
        for letter in row.chars() {
            if let Some(empty @ 1..=8) = letter.to_digit(10) {
                squares += empty as usize;
                continue;
            }
            let (white, black) = read_letter(letter).ok_or_else(|| {
                format!("{letter:?} is neither a piece, nor a union, nor a number of empty squares")
            })?;
            if let Some(file) = File::try_index(squares) {
                let square = Square::new(file, rank);
                put(&mut board, Player::First, square, white);
                put(&mut board, Player::Second, square, black);
            }
            squares += 1;
        }
        if squares != File::NUM {
            return Err(format!(
                "row {} of the board holds {squares} squares instead of eight",
                rank as usize + 1
            ));
        }
    }
    Ok(board)
}

fn put(board: &mut Board, player: Player, square: Square, kind: Option<Kind>) {
    if let Some(kind) = kind {
        board.put(player, square, kind);
    }
}

fn read_hand(text: &str, to_move: Player) -> Result<Hand, String> {
    let fault = || format!("the hand {text:?} is not a square and one letter, e.g. ^e2P");
    let (place, letter) = text.split_at_checked(2).ok_or_else(fault)?;
    let square = place.parse().map_err(|_| fault())?;
    let mut letters = letter.chars();
    let (Some(letter), None) = (letters.next(), letters.next()) else {
        return Err(fault());
    };
    let (white, black) = read_letter(letter).ok_or_else(fault)?;
    let (own, partner) = match to_move {
        Player::First => (white, black),
        Player::Second => (black, white),
    };
    Ok(Hand {
        square,
        own: own.ok_or("the hand does not hold a piece of the side to move")?,
        partner,
    })
}

fn read_castling(text: &str, board: &Board, hand: Option<Hand>, to_move: Player) -> Result<Castling, String> {
    let fault = || {
        format!(
            "the castling rights are {text:?} instead of rook files such as AHah, one for each wing, or -"
        )
    };
    let king_file = |player: Player| {
        let held = hand
            .filter(|hand| hand.own == Kind::King && player == to_move)
            .map(|hand| hand.square);
        let settled = board.of(player, Kind::King).next_square();
        held.or(settled).map_or(File::E, Square::file)
    };
    let mut castling = Castling::of_kings([king_file(Player::First), king_file(Player::Second)]);
    if text == "-" {
        return Ok(castling);
    }
    for letter in text.chars() {
        let player = if letter.is_ascii_uppercase() {
            Player::First
        } else {
            Player::Second
        };
        let file = letter.to_ascii_lowercase().try_into().map_err(|_| fault())?;
        if !castling.grant(player, file) {
            return Err(fault());
        }
    }
    Ok(castling)
}

fn read_en_passant(text: &str) -> Result<Option<Square>, String> {
    if text == "-" {
        return Ok(None);
    }
    match text.parse::<Square>() {
        Ok(square) if matches!(square.rank(), Rank::Third | Rank::Sixth) => Ok(Some(square)),
        _ => Err(format!(
            "the en-passant square is {text:?} instead of one on row 3 or 6, or -"
        )),
    }
}

/// Returns the white and the black piece of a letter. `None` if it is another letter.
fn read_letter(letter: char) -> Option<(Option<Kind>, Option<Kind>)> {
    let of = |player: Player| Kind::ALL.into_iter().find(|kind| kind.letter(player) == letter);
    let (white, black) = (of(Player::First), of(Player::Second));
    if white.is_some() || black.is_some() {
        return Some((white, black));
    }
    let &(small, white, black) = UNIONS
        .iter()
        .find(|(small, ..)| small.eq_ignore_ascii_case(&letter))?;
    Some(if letter == small {
        (Some(white), Some(black))
    } else {
        (Some(black), Some(white))
    })
}

fn letter(white: Option<Kind>, black: Option<Kind>) -> Option<char> {
    match (white, black) {
        (None, None) => None,
        (Some(kind), None) => Some(kind.letter(Player::First)),
        (None, Some(kind)) => Some(kind.letter(Player::Second)),
        // Two united kings cannot occur, and the dialect has no letter for them. `_` is not read back.
        (Some(Kind::King), Some(Kind::King)) => Some('_'),
        (Some(white), Some(black)) => UNIONS.iter().find_map(|&(small, one, other)| match (one, other) {
            pair if pair == (white, black) => Some(small),
            pair if pair == (black, white) => Some(small.to_ascii_uppercase()),
            _ => None,
        }),
    }
}

/// Writes a position as a FEN.
pub(super) fn write(position: &Position) -> String {
    let mut text = String::with_capacity(80);
    for rank in Rank::ALL.into_iter().rev() {
        write_row(&mut text, &position.board, rank);
        if rank != Rank::First {
            text.push('/');
        }
    }
    if let Some(hand) = position.hand {
        let (white, black) = match position.to_move {
            Player::First => (Some(hand.own), hand.partner),
            Player::Second => (hand.partner, Some(hand.own)),
        };
        let _ = write!(text, "^{}", hand.square);
        text.extend(letter(white, black));
    }
    let side = match position.to_move {
        Player::First => 'w',
        Player::Second => 'b',
    };
    let en_passant = position
        .en_passant
        .map_or_else(|| "-".into(), |square| square.to_string());
    let castling = write_castling(&position.castling);
    let _ = write!(text, " {side} {} {castling} {en_passant} -", position.no_progress);
    text
}

fn write_row(text: &mut String, board: &Board, rank: Rank) {
    let mut empty = 0;
    for file in File::ALL {
        let square = Square::new(file, rank);
        let pieces = letter(
            board.kind_at(Player::First, square),
            board.kind_at(Player::Second, square),
        );
        let Some(letter) = pieces else {
            empty += 1;
            continue;
        };
        if empty > 0 {
            let _ = write!(text, "{empty}");
            empty = 0;
        }
        text.push(letter);
    }
    if empty > 0 {
        let _ = write!(text, "{empty}");
    }
}

/// Returns the castling rights as files of their rooks, e.g. `AHah`, or `-`.
pub(super) fn write_castling(castling: &Castling) -> String {
    let mut text = String::new();
    for (player, wing) in RIGHTS {
        let Some(file) = castling.rook_file(player, wing) else {
            continue;
        };
        let letter = file.to_string();
        text.push_str(&if player == Player::First {
            letter.to_ascii_uppercase()
        } else {
            letter
        });
    }
    if text.is_empty() { "-".into() } else { text }
}
