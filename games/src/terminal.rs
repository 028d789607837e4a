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

fn draw_board(board: &Board, style: Style) -> String {
    let style = Style {
        flipped: style.flipped && board.is_turned_for_second,
        ..style
    };
    let grid = Grid {
        columns: board.columns,
        rows: board.rows,
        width: board.pieces_per_cell,
    };
    grid.draw(style, |row, column| {
        let cell = board.cells.get(row * board.columns.len() + column);
        cell.map_or_else(String::new, |cell| cell_text(board, cell, style))
    })
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

/// Table of cells with labels below its columns and next to its rows.
#[derive(Clone, Copy, Debug)]
struct Grid<'a> {
    /// Labels of the columns, from the left as the first player sees them.
    columns: &'a [&'a str],
    /// Labels of the rows, from the top as the first player sees them.
    rows: &'a [&'a str],
    /// Characters of a cell's content.
    width: usize,
}

impl Grid<'_> {
    /// Draws the grid. `cell(row, column)` gives the content of a cell, numbered as in `rows` and `columns`.
    fn draw(&self, style: Style, mut cell: impl FnMut(usize, usize) -> String) -> String {
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

    #[test]
    fn a_grid_has_borders_and_labels_and_can_be_turned() {
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
    fn colours_count_as_no_characters() {
        assert_eq!(centred("\u{1b}[31mX\u{1b}[0m", 3), " \u{1b}[31mX\u{1b}[0m ");
    }
}
