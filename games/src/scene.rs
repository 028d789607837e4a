//! A position as a drawing in the form of data: squares, pieces, labels and marks.
//!
//! A [`Scene`] serialises to JSON, so that a page can draw a board without knowing the rules. The terminal draws the same
//! scene as text ([`crate::terminal`]).

use serde::Serialize;

use crate::Player;

/// Everything that a drawing of a position shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scene {
    /// Name of the game.
    pub game: &'static str,
    /// Names of the first and the second player.
    pub players: [&'static str; 2],
    /// Player to act.
    pub to_move: Player,
    /// Boards from left to right. Board games have one; the generator game has one for each grid.
    pub boards: Vec<Board>,
    /// Pieces that the player to act has lifted and not yet placed.
    pub hand: Option<Hand>,
    /// Fact that the board does not show, e.g. a check. Empty if there is none.
    pub remark: String,
    /// Tree of parts that the boards are drawn from, parents before children. Empty in board games.
    pub tree: Vec<Part>,
}

/// One part of [`Scene::tree`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Number of edges between the root and the part.
    pub depth: u8,
    /// Name and value of the part.
    pub text: String,
}

/// Clicks with which a person plays one action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clicks {
    /// Cells of the first board, one list for each click in turn. Each cell of a list will do; the first one is marked.
    pub cells: Vec<Vec<usize>>,
    /// Piece that is picked after the clicks, e.g. the one that a pawn is promoted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<Piece>,
    /// Part of the tree that the action changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
}

/// One rectangular board.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Board {
    /// Title above the board. Empty if there is only one board.
    pub title: &'static str,
    /// Look of the empty board.
    pub surface: Surface,
    /// Labels of the columns, from the left as the first player sees them.
    pub columns: &'static [&'static str],
    /// Labels of the rows, from the top as the first player sees them. An empty label is not drawn.
    pub rows: &'static [&'static str],
    /// Cells in reading order: `columns.len() · rows.len()` of them.
    pub cells: Vec<Cell>,
    /// Colour of each player's pieces, as CSS names it.
    pub colors: [&'static str; 2],
    /// Largest number of pieces on one cell.
    pub pieces_per_cell: usize,
    /// True if the board is drawn upside down for the second player.
    pub is_turned_for_second: bool,
}

/// Look of an empty board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// Light and dark squares in turn.
    Checkered,
    /// Squares of one colour.
    Plain,
    /// Round holes in a frame.
    Holes,
    /// Cells that are painted in the palette's colours ([`Cell::paint`]).
    Painted,
}

/// One cell of a board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Pieces on the cell.
    pub pieces: Vec<Piece>,
    /// Colour 0 to 9 of a painted cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paint: Option<u8>,
    /// True if the last turn touched the cell.
    pub is_last: bool,
    /// True if the drawing points out that the player to act can play here.
    pub is_playable: bool,
}

/// A piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Owner of the piece.
    pub player: Player,
    /// Kind of piece, e.g. `king` or `disc`.
    pub kind: &'static str,
    /// ASCII letter of the piece.
    pub letter: char,
    /// Unicode symbol of the piece.
    pub symbol: char,
}

/// Pieces in the hand of the player to act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hand {
    /// Name of the square that the pieces were lifted from.
    pub square: String,
    /// Cell of that square on the first board.
    pub cell: usize,
    /// Pieces in the hand.
    pub pieces: Vec<Piece>,
}

/// Labels of the eight files of a square board.
pub const FILES: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h"];
/// Labels of the eight ranks, the eighth on top.
pub const RANKS: &[&str] = &["8", "7", "6", "5", "4", "3", "2", "1"];
/// Labels of the eight ranks, the first on top.
pub const RANKS_FROM_TOP: &[&str] = &["1", "2", "3", "4", "5", "6", "7", "8"];

impl Piece {
    /// Returns the chessman that a FEN writes with this letter (upper case for White). `None` for other letters.
    pub fn chessman(letter: char) -> Option<Self> {
        let (kind, [white, black]) = match letter.to_ascii_lowercase() {
            'k' => ("king", ['♔', '♚']),
            'q' => ("queen", ['♕', '♛']),
            'r' => ("rook", ['♖', '♜']),
            'b' => ("bishop", ['♗', '♝']),
            'n' => ("knight", ['♘', '♞']),
            'p' => ("pawn", ['♙', '♟']),
            _ => return None,
        };
        let (player, symbol) = if letter.is_ascii_uppercase() {
            (Player::First, white)
        } else {
            (Player::Second, black)
        };
        Some(Self {
            player,
            kind,
            letter,
            symbol,
        })
    }

    /// Returns a round piece: a disc or a stone.
    pub const fn disc(player: Player) -> Self {
        let (letter, symbol) = match player {
            Player::First => ('X', '●'),
            Player::Second => ('O', '○'),
        };
        Self {
            player,
            kind: "disc",
            letter,
            symbol,
        }
    }
}

impl Board {
    /// Returns a board of 8×8 squares with rank 1 at the bottom. `cell` gives the content of a square, 0 (a1) to 63 (h8).
    pub fn of_squares(cell: impl Fn(u32) -> Cell) -> Self {
        Self {
            title: "",
            surface: Surface::Checkered,
            columns: FILES,
            rows: RANKS,
            cells: (0..64).map(|place| cell(place ^ 56)).collect(),
            colors: ["white", "black"],
            pieces_per_cell: 1,
            is_turned_for_second: true,
        }
    }

    /// Returns the name of a cell: the labels of its column and its row.
    pub fn name(&self, cell: usize) -> String {
        let width = self.columns.len().max(1);
        let label = |labels: &[&'static str], at: usize| labels.get(at).copied().unwrap_or_default();
        format!(
            "{}{}",
            label(self.columns, cell % width),
            label(self.rows, cell / width)
        )
    }
}

impl Cell {
    /// Returns a cell with the disc of whichever player's bitboard has the bit `bit`, if any.
    pub fn of_discs([first, second]: [u64; 2], bit: u32) -> Self {
        let has = |discs: u64| discs >> bit & 1 == 1;
        let owners = [(first, Player::First), (second, Player::Second)];
        Self {
            pieces: owners
                .into_iter()
                .filter(|&(discs, _)| has(discs))
                .map(|(_, player)| Piece::disc(player))
                .collect(),
            ..Self::default()
        }
    }
}

impl Clicks {
    /// Makes clicks on one cell after the other.
    pub fn on(cells: impl IntoIterator<Item = usize>) -> Self {
        Self {
            cells: cells.into_iter().map(|cell| vec![cell]).collect(),
            ..Self::default()
        }
    }
}

/// Returns the cell of a square, 0 (a1) to 63 (h8), on a board of 8×8 squares with rank 1 at the bottom.
pub const fn cell_of(square: u32) -> usize {
    (square ^ 56) as usize
}

/// Returns the name of a square, 0 (a1) to 63 (h8).
///
/// ```
/// assert_eq!(games::scene::square_name(28), "e4");
/// assert_eq!(games::scene::read_square("E4"), Some(28));
/// ```
pub fn square_name(square: u32) -> String {
    let file = FILES.get(square as usize % 8).copied().unwrap_or_default();
    format!("{file}{}", square / 8 + 1)
}

/// Returns the square with this name, in either case. `None` if the text is not the name of a square.
pub fn read_square(text: &str) -> Option<u32> {
    match text.as_bytes() {
        &[file @ (b'a'..=b'h' | b'A'..=b'H'), rank @ b'1'..=b'8'] => {
            let file = file.to_ascii_lowercase() - b'a';
            Some(u32::from(rank - b'1') * 8 + u32::from(file))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_read_as_they_are_written() {
        for square in 0..64 {
            assert_eq!(read_square(&square_name(square)), Some(square));
            assert_eq!(read_square(&square_name(square).to_uppercase()), Some(square));
        }
        for text in ["", "e", "e9", "i1", "e44", "é4"] {
            assert_eq!(read_square(text), None, "{text}");
        }
    }

    #[test]
    fn a_board_of_squares_begins_with_a8() {
        let board = Board::of_squares(|square| Cell {
            paint: Some(square as u8),
            ..Cell::default()
        });
        let paints: Vec<u8> = board.cells.iter().filter_map(|cell| cell.paint).collect();
        assert_eq!(paints[..2], [56, 57]);
        assert_eq!(paints[63], 7);
    }
}
