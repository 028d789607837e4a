//! A [`Scene`] as text for a terminal.

use std::fmt::Write as _;

use crate::{
    Player,
    scene::{Board, Cell, Scene, Surface},
};

/// Look of a drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Only ASCII characters.
    pub ascii: bool,
    /// Terminal colours (ANSI escapes) are allowed.
    pub colour: bool,
    /// The board is drawn from the second player's side.
    pub flipped: bool,
}

/// Draws the boards of a scene, one below the other. Each line ends with a line feed.
pub fn draw(scene: &Scene, style: Style) -> String {
    scene
        .boards
        .iter()
        .map(|board| match board.surface {
            Surface::Lines | Surface::Hexagons => draw_points(board, style),
            _ => draw_table(board, style),
        })
        .collect()
}

/// Returns the rows and the columns of a board in the order of their drawing.
fn order(board: &Board, style: Style) -> [Vec<usize>; 2] {
    let is_flipped = style.flipped && board.is_turned_for_second;
    [board.rows.len(), board.columns.len()].map(|count| {
        if is_flipped {
            (0..count).rev().collect()
        } else {
            (0..count).collect()
        }
    })
}

/// Returns the length of the longest label of a row.
fn margin(board: &Board) -> usize {
    let lengths = board.rows.iter().map(|row| row.chars().count());
    lengths.max().unwrap_or(0)
}

/// Draws a board with one character for each cell and a space between cells, so that 19 columns fit into 80 characters. Each row
/// of hexagons begins one character to the right of the one above it.
fn draw_points(board: &Board, style: Style) -> String {
    let [rows, columns] = order(board, style);
    let margin = margin(board);
    let indent = |number: usize| match board.surface {
        Surface::Hexagons => number,
        _ => 0,
    };
    let mut text = String::new();
    for (number, &row) in rows.iter().enumerate() {
        let _ = write!(text, "{:>margin$}{:2$}", board.rows[row], "", indent(number));
        for &column in &columns {
            let cell = board.cells.get(row * columns.len() + column);
            let _ = write!(
                text,
                " {}",
                cell.map_or_else(String::new, |cell| point_text(board, cell, style))
            );
        }
        text.push('\n');
    }
    let _ = write!(text, "{:1$}", "", margin + indent(rows.len()));
    for &column in &columns {
        let _ = write!(text, " {}", board.columns[column]);
    }
    text.push('\n');
    text
}

/// Returns the character of a crossing or a hexagon: its stone, its owner, or a sign for an empty one.
fn point_text(board: &Board, cell: &Cell, style: Style) -> String {
    if !cell.pieces.is_empty() {
        return cell_text(board, cell, style);
    }
    let [ascii, unicode] = match (cell.owner, cell.is_star) {
        (Some(Player::First), _) => ['x', '▪'],
        (Some(Player::Second), _) => ['o', '▫'],
        (None, true) => ['+', '+'],
        (None, false) => ['.', '·'],
    };
    String::from(if style.ascii { ascii } else { unicode })
}

/// Draws a board as a table of cells, with labels below its columns and next to its rows.
fn draw_table(board: &Board, style: Style) -> String {
    let [rows, columns] = order(board, style);
    let margin = margin(board);
    let width = board.pieces_per_cell + 2;
    let lines = if style.ascii { ASCII } else { UNICODE };
    let edge = |[left, middle, right]: [&str; 3]| {
        let cells = vec![lines.across.repeat(width); columns.len()];
        format!("{:margin$} {left}{}{right}\n", "", cells.join(middle))
    };
    let mut text = String::new();
    for (number, &row) in rows.iter().enumerate() {
        text += &edge(if number == 0 { lines.top } else { lines.between });
        let _ = write!(text, "{:>margin$} ", board.rows[row]);
        for &column in &columns {
            let cell = board.cells.get(row * columns.len() + column);
            let content = cell.map_or_else(String::new, |cell| cell_text(board, cell, style));
            let _ = write!(text, "{}{}", lines.down, centred(&content, width));
        }
        let _ = writeln!(text, "{}", lines.down);
    }
    text += &edge(lines.bottom);
    let _ = write!(text, "{:margin$} ", "");
    for &column in &columns {
        let _ = write!(text, " {}", centred(&board.columns[column], width));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn cell_text(board: &Board, cell: &Cell, style: Style) -> String {
    if cell.pieces.is_empty() && cell.is_playable {
        return if style.ascii { "." } else { "·" }.into();
    }
    let mut text = String::new();
    for piece in &cell.pieces {
        if style.ascii {
            text.push(piece.letter);
            continue;
        }
        let color = board.colors[piece.player.index()];
        match ansi_color(color).filter(|_| style.colour) {
            Some(code) => {
                let _ = write!(text, "\u{1b}[{code}m{}\u{1b}[0m", piece.symbol);
            }
            None => text.push(piece.symbol),
        }
    }
    text
}

/// Returns the ANSI colour code of a piece's colour. Black and white are told apart by the symbols instead.
fn ansi_color(name: &str) -> Option<u8> {
    match name {
        "red" => Some(31),
        "green" => Some(32),
        "yellow" => Some(33),
        "blue" => Some(34),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Lines {
    across: &'static str,
    down: &'static str,
    top: [&'static str; 3],
    between: [&'static str; 3],
    bottom: [&'static str; 3],
}

const UNICODE: Lines = Lines {
    across: "─",
    down: "│",
    top: ["┌", "┬", "┐"],
    between: ["├", "┼", "┤"],
    bottom: ["└", "┴", "┘"],
};

const ASCII: Lines = Lines {
    across: "-",
    down: "|",
    top: ["+", "+", "+"],
    between: ["+", "+", "+"],
    bottom: ["+", "+", "+"],
};

/// Pads a text on both sides to `width` characters. ANSI escapes in it count as no characters.
fn centred(text: &str, width: usize) -> String {
    let mut shown = 0;
    let mut in_colour = false;
    for c in text.chars() {
        match c {
            '\u{1b}' => in_colour = true,
            'm' if in_colour => in_colour = false,
            _ if !in_colour => shown += 1,
            _ => {}
        }
    }
    let room = width.saturating_sub(shown);
    let left = room / 2;
    format!("{:left$}{text}{:right$}", "", "", right = room - left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{CHESS_BOARD, Piece};

    #[test]
    fn a_board_has_borders_and_labels_and_can_be_turned() {
        let piece = |letter| Cell {
            pieces: Piece::chessman(letter).into_iter().collect(),
            ..Cell::default()
        };
        let board = Board {
            columns: ["a", "b"].map(String::from).into(),
            rows: ["2", "1"].map(String::from).into(),
            cells: ['K', 'q', 'R', 'n'].map(piece).to_vec(),
            ..Board::of_squares(CHESS_BOARD, |_| Cell::default())
        };
        let draw = |ascii, flipped| {
            let colour = false;
            draw_table(
                &board,
                Style {
                    ascii,
                    colour,
                    flipped,
                },
            )
        };
        assert_eq!(
            draw(true, false),
            "  +---+---+\n2 | K | q |\n  +---+---+\n1 | R | n |\n  +---+---+\n    a   b\n"
        );
        assert_eq!(
            draw(false, true),
            "  ┌───┬───┐\n1 │ ♞ │ ♖ │\n  ├───┼───┤\n2 │ ♛ │ ♔ │\n  └───┴───┘\n    b   a\n"
        );
    }

    #[test]
    fn crossings_and_hexagons_have_one_character_each() {
        let mut cells = vec![Cell::default(); 4];
        cells[0].pieces.push(Piece::disc(Player::First));
        cells[1].is_star = true;
        cells[2].owner = Some(Player::Second);
        let mut board = Board {
            surface: Surface::Lines,
            columns: ["a", "b"].map(String::from).into(),
            rows: ["10", "9"].map(String::from).into(),
            cells,
            ..Board::of_squares(CHESS_BOARD, |_| Cell::default())
        };
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        assert_eq!(draw_points(&board, ascii), "10 X +\n 9 o .\n   a b\n");
        assert_eq!(draw_points(&board, Style::default()), "10 ● +\n 9 ▫ ·\n   a b\n");
        board.surface = Surface::Hexagons;
        let flipped = Style {
            flipped: true,
            ..ascii
        };
        assert_eq!(draw_points(&board, flipped), " 9 . o\n10  + X\n     b a\n");
    }

    #[test]
    fn colours_count_as_no_characters() {
        assert_eq!(centred("\u{1b}[31mX\u{1b}[0m", 3), " \u{1b}[31mX\u{1b}[0m ");
    }
}
