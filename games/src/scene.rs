//! A position as a drawing in the form of data: squares, pieces, labels and marks.
//!
//! A [`Scene`] serialises to JSON, so that a page can draw a board without knowing the rules. The terminal draws the same
//! scene as text ([`crate::terminal`]).

use serde::Serialize;

use crate::{Player, Territory};

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
    pub columns: Vec<String>,
    /// Labels of the rows, from the top as the first player sees them. An empty label is not drawn.
    pub rows: Vec<String>,
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
    /// Crossings of lines, for Go and Gomoku.
    Lines,
    /// Hexagons. Each row lies half a cell to the right of the one above it. The sides at the top and at the bottom have the
    /// colour of the first player, the other two that of the second.
    Hexagons,
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
    /// True if the empty cell has a dot by which people find their way (star point).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_star: bool,
    /// Player who owns the cell of a game that is over ([`Territory`](crate::Territory)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Player>,
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

/// Squares of a board with their names: a letter for the file, and the number of the rank. Square `width·rank + file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Squares {
    /// Number of ranks.
    pub height: u32,
    /// Number of files, at most the number of letters.
    pub width: u32,
    /// Letters of the files, from a.
    pub letters: &'static str,
}

/// Squares of a chess board.
pub const CHESS_BOARD: Squares = Squares::new(8, 8);

impl Squares {
    /// Returns the squares of a board whose files have the letters of the alphabet.
    pub const fn new(height: u32, width: u32) -> Self {
        Self {
            height,
            width,
            letters: "abcdefghijklmnopqrstuvwxyz",
        }
    }

    /// Returns the number of squares.
    pub const fn count(self) -> u32 {
        self.height * self.width
    }

    /// Returns the labels of the files, from the left.
    pub fn files(self) -> Vec<String> {
        self.letters
            .chars()
            .take(self.width as usize)
            .map(String::from)
            .collect()
    }

    /// Returns the labels of the ranks from the top, where the highest rank is.
    pub fn ranks(self) -> Vec<String> {
        (1..=self.height).rev().map(|rank| rank.to_string()).collect()
    }

    /// Returns the name of a square, e.g. `e4`.
    pub fn name(self, square: u32) -> String {
        let file = self.letters.chars().nth((square % self.width) as usize);
        format!("{}{}", file.unwrap_or_default(), square / self.width + 1)
    }

    /// Returns the square with this name, in either case. `None` if the text is not the name of a square.
    pub fn read(self, text: &str) -> Option<u32> {
        let mut rest = text.chars();
        let letter = rest.next()?;
        let file = self
            .letters
            .chars()
            .position(|file| file.eq_ignore_ascii_case(&letter))? as u32;
        let rank = rest.as_str();
        let is_plain = rank.bytes().all(|byte| byte.is_ascii_digit()) && !rank.starts_with('0');
        let rank: u32 = rank.parse().ok().filter(|_| is_plain)?;
        (file < self.width && (1..=self.height).contains(&rank)).then(|| (rank - 1) * self.width + file)
    }

    /// True if boards of Go and Gomoku have a star point on this square: on the third lines from the edge (fourth lines from 13 lines
    /// on) where they cross, in the middle, and from 17 lines on where a middle line crosses them.
    pub const fn is_star(self, square: u32) -> bool {
        /// Kind of a line: 1 near an edge, 2 in the middle, 0 another.
        const fn kind(line: u32, lines: u32) -> u32 {
            let from_edge = if line < lines / 2 { line } else { lines - 1 - line };
            match (from_edge, lines) {
                (2, 7..13) | (3, 13..) => 1,
                _ if lines % 2 == 1 && line == lines / 2 => 2,
                _ => 0,
            }
        }
        let kinds = (
            kind(square / self.width, self.height),
            kind(square % self.width, self.width),
        );
        match kinds {
            (1, 1) | (2, 2) => true,
            (1, 2) | (2, 1) => self.width >= 17,
            _ => false,
        }
    }

    /// Returns the cell of a square on a board with the highest rank on top, and the square of a cell.
    pub const fn cell(self, square: u32) -> usize {
        let rank = self.height - 1 - square / self.width % self.height;
        (rank * self.width + square % self.width) as usize
    }
}

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
    /// Returns a board with rank 1 at the bottom. `cell` gives the content of a square.
    pub fn of_squares(squares: Squares, cell: impl Fn(u32) -> Cell) -> Self {
        Self {
            title: "",
            surface: Surface::Checkered,
            columns: squares.files(),
            rows: squares.ranks(),
            cells: (0..squares.count())
                .map(|place| cell(squares.cell(place) as u32))
                .collect(),
            colors: ["white", "black"],
            pieces_per_cell: 1,
            is_turned_for_second: true,
        }
    }

    /// Marks the cells that a player owns. The territory's squares are those of [`Board::of_squares`].
    pub(crate) fn mark_owners(&mut self, territory: &Territory) {
        let squares = Squares::new(self.rows.len() as u32, self.columns.len() as u32);
        for (square, owner) in (0..).zip(&territory.owners) {
            if let Some(cell) = self.cells.get_mut(squares.cell(square)) {
                cell.owner = match owner {
                    1 => Some(Player::First),
                    -1 => Some(Player::Second),
                    _ => None,
                };
            }
        }
    }

    /// Returns the name of a cell: the labels of its column and its row.
    pub fn name(&self, cell: usize) -> String {
        let width = self.columns.len().max(1);
        let label = |labels: &[String], at: usize| labels.get(at).cloned().unwrap_or_default();
        label(&self.columns, cell % width) + &label(&self.rows, cell / width)
    }
}

impl Cell {
    /// Returns a cell with the disc of whichever player's bitboard has the bit `bit`, if any.
    pub fn of_discs([first, second]: [u64; 2], bit: u32) -> Self {
        let has = |discs: u64| discs >> bit & 1 == 1;
        let owners = [(first, Player::First), (second, Player::Second)];
        let owner = owners.into_iter().find(|&(discs, _)| has(discs));
        Self::of_disc(owner.map(|(_, player)| player))
    }

    /// Returns a cell with a disc of this player; an empty cell if there is none.
    pub fn of_disc(owner: Option<Player>) -> Self {
        Self {
            pieces: owner.map(Piece::disc).into_iter().collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_read_as_they_are_written() {
        let go = Squares {
            letters: "abcdefghjklmnopqrstuvwxyz",
            ..Squares::new(19, 19)
        };
        for squares in [CHESS_BOARD, Squares::new(6, 7), Squares::new(15, 15), go] {
            for square in 0..squares.count() {
                let name = squares.name(square);
                assert_eq!(squares.read(&name), Some(square));
                assert_eq!(squares.read(&name.to_uppercase()), Some(square));
                assert_eq!(squares.cell(squares.cell(square) as u32), square as usize);
            }
        }
        for text in ["", "e", "e0", "e04", "e+4", "e9", "i1", "e44", "é4"] {
            assert_eq!(CHESS_BOARD.read(text), None, "{text}");
        }
        assert_eq!((CHESS_BOARD.name(28), go.name(8)), ("e4".into(), "j1".into()));
        assert_eq!((go.read("i1"), go.read("t19")), (None, Some(360)));
    }

    #[test]
    fn owners_are_on_the_cells_of_their_squares() {
        let mut board = Board::of_squares(Squares::new(2, 3), |_| Cell::default());
        board.mark_owners(&Territory {
            owners: vec![1, 0, -1, 0, 1, 0],
            score: 0.0,
        });
        let owners: Vec<Option<Player>> = board.cells.iter().map(|cell| cell.owner).collect();
        let [first, second] = [Some(Player::First), Some(Player::Second)];
        assert_eq!(owners, [None, first, None, first, None, second]);
    }

    #[test]
    fn star_points_are_where_people_expect_them() {
        let stars = |side| {
            let squares = Squares::new(side, side);
            let stars = (0..squares.count()).filter(|&square| squares.is_star(square));
            stars
                .map(|square| squares.name(square))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(stars(5), "c3");
        assert_eq!(stars(8), "c3 f3 c6 f6");
        assert_eq!(stars(9), "c3 g3 e5 c7 g7");
        assert_eq!(stars(15), "d4 l4 h8 d12 l12");
        assert_eq!(stars(19), "d4 j4 p4 d10 j10 p10 d16 j16 p16");
    }

    #[test]
    fn a_board_of_squares_begins_with_a8() {
        let board = Board::of_squares(CHESS_BOARD, |square| Cell {
            paint: Some(square as u8),
            ..Cell::default()
        });
        let paints: Vec<u8> = board.cells.iter().filter_map(|cell| cell.paint).collect();
        assert_eq!(paints[..2], [56, 57]);
        assert_eq!(paints[63], 7);
    }
}
