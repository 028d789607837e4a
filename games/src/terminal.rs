//! A [`Scene`] as text for a terminal.

use std::fmt::Write as _;

use crate::scene::{Board, Cell, Scene};

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
        .map(|board| draw_board(board, style))
        .collect()
}

/// Draws a board as a table of cells, with labels below its columns and next to its rows.
fn draw_board(board: &Board, style: Style) -> String {
    let is_flipped = style.flipped && board.is_turned_for_second;
    let order = |count: usize| -> Vec<usize> {
        if is_flipped {
            (0..count).rev().collect()
        } else {
            (0..count).collect()
        }
    };
    let (rows, columns) = (order(board.rows.len()), order(board.columns.len()));
    let margin = board
        .rows
        .iter()
        .map(|row| row.chars().count())
        .max()
        .unwrap_or(0);
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
        let _ = write!(text, " {}", centred(board.columns[column], width));
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
    use crate::scene::Piece;

    #[test]
    fn a_board_has_borders_and_labels_and_can_be_turned() {
        let piece = |letter| Cell {
            pieces: Piece::chessman(letter).into_iter().collect(),
            ..Cell::default()
        };
        let board = Board {
            columns: &["a", "b"],
            rows: &["2", "1"],
            cells: ['K', 'q', 'R', 'n'].map(piece).to_vec(),
            ..Board::of_squares(|_| Cell::default())
        };
        let draw = |ascii, flipped| {
            let colour = false;
            draw_board(
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
    fn colours_count_as_no_characters() {
        assert_eq!(centred("\u{1b}[31mX\u{1b}[0m", 3), " \u{1b}[31mX\u{1b}[0m ");
    }
}
