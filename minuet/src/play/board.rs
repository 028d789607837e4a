//! Boards in a terminal.

use std::fmt::Write as _;

/// How things are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Only characters that every terminal has.
    pub ascii: bool,
    /// Terminal colours may be used.
    pub colour: bool,
    /// The board is seen from the second player's side.
    pub flipped: bool,
}

/// A grid of cells with letters below its columns and numbers beside its rows.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// Columns, from the left as the first player sees them.
    pub columns: &'a [&'a str],
    /// Rows, from the top as the first player sees them; an empty text for none.
    pub rows: &'a [&'a str],
    /// Characters of a cell's content.
    pub width: usize,
}

impl Grid<'_> {
    /// Draws the grid; `cell` is asked for the content of (row, column), counted in the order of `rows` and `columns`.
    pub fn draw(&self, style: Style, mut cell: impl FnMut(usize, usize) -> String) -> String {
        let order = |count: usize| -> Vec<usize> {
            if style.flipped {
                (0..count).rev().collect()
            } else {
                (0..count).collect()
            }
        };
        let (rows, columns) = (order(self.rows.len()), order(self.columns.len()));
        let margin = self.rows.iter().map(|row| row.chars().count()).max().unwrap_or(0);
        let lines = if style.ascii { ASCII } else { UNICODE };
        let mut text = String::new();
        for (number, &row) in rows.iter().enumerate() {
            let edge = if number == 0 { lines.top } else { lines.between };
            self.edge(&mut text, margin, lines.across, edge);
            let _ = write!(text, "{:>margin$} ", self.rows[row]);
            for &column in &columns {
                let _ = write!(
                    text,
                    "{}{}",
                    lines.down,
                    centred(&cell(row, column), self.width + 2)
                );
            }
            let _ = writeln!(text, "{}", lines.down);
        }
        self.edge(&mut text, margin, lines.across, lines.bottom);
        let _ = write!(text, "{:margin$} ", "");
        for &column in &columns {
            let _ = write!(text, " {}", centred(self.columns[column], self.width + 2));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    fn edge(&self, text: &mut String, margin: usize, across: &str, [left, middle, right]: [&str; 3]) {
        let cells = vec![across.repeat(self.width + 2); self.columns.len()];
        let _ = writeln!(text, "{:margin$} {left}{}{right}", "", cells.join(middle));
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

/// Puts a text in the middle of so many characters; terminal colours in it take no room.
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

/// Columns of the 8×8 boards.
pub const FILES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
/// Rows of the 8×8 boards, the first player at the bottom.
pub const RANKS: [&str; 8] = ["8", "7", "6", "5", "4", "3", "2", "1"];

/// A piece of chess, given as a FEN letters it, as a character.
pub fn piece(letter: char, style: Style) -> char {
    if style.ascii {
        return letter;
    }
    match letter {
        'K' => '♔',
        'Q' => '♕',
        'R' => '♖',
        'B' => '♗',
        'N' => '♘',
        'P' => '♙',
        'k' => '♚',
        'q' => '♛',
        'r' => '♜',
        'b' => '♝',
        'n' => '♞',
        'p' => '♟',
        other => other,
    }
}

/// The name of a square, 0 (a1) to 63 (h8).
pub fn square_name(square: u32) -> String {
    let file = FILES.get(square as usize % 8).copied().unwrap_or_default();
    format!("{file}{}", square / 8 + 1)
}

/// The square that a text names.
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
    fn a_small_grid() {
        let grid = Grid {
            columns: &["a", "b"],
            rows: &["2", "1"],
            width: 1,
        };
        let ascii = Style {
            ascii: true,
            ..Style::default()
        };
        let draw = |style| grid.draw(style, |row, column| ["wx", "yz"][row][column..=column].into());
        assert_eq!(
            draw(ascii),
            "  +---+---+\n2 | w | x |\n  +---+---+\n1 | y | z |\n  +---+---+\n    a   b\n"
        );
        let flipped = Style {
            flipped: true,
            ..Style::default()
        };
        assert_eq!(
            draw(flipped),
            "  ┌───┬───┐\n1 │ z │ y │\n  ├───┼───┤\n2 │ x │ w │\n  └───┴───┘\n    b   a\n"
        );
    }

    #[test]
    fn colours_take_no_room() {
        assert_eq!(centred("\u{1b}[31mX\u{1b}[0m", 3), " \u{1b}[31mX\u{1b}[0m ");
    }
}
