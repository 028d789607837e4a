//! Clans and grids for people: clans as text, one line for the Generator and for each shape with its leaves, and in words, one sentence
//! for the grid and for each of its shapes; grids in ARC's colours for a terminal, or as letters.

use std::fmt::{self, Write as _};

use super::{
    clan::Clan,
    grammar::{
        self, COORDS, DOT, GROUP, LINE, R_COLOR, R_DIRECTION, R_LENGTH, R_PIVOT, R_START, R_TURNS, RECT,
        ROTATION,
    },
    grid::{Grid, SIDE},
};

/// Writes ` number:name=value` for a leaf or a Coords. Writes nothing for a shape, which has its own line.
fn write_leaf(clan: &Clan, imp: usize, text: &mut String) {
    let value = clan.values[imp];
    let name = grammar::role_name(clan.roles[imp]);
    let _ = match value {
        COORDS => write!(
            text,
            " {imp}:{name}=({}, {})",
            grammar::value_name(clan.values[imp + 1]),
            grammar::value_name(clan.values[imp + 2])
        ),
        _ if grammar::is_leaf(value) => write!(text, " {imp}:{name}={}", grammar::value_name(value)),
        _ => Ok(()),
    };
}

impl Clan {
    /// Returns the text of the clan, with one line for the Generator and for each shape. Numbers of imps are before
    /// their names. The x of a Coords has the number after it, the y the number after that.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (imp, &depth) in self.depths().iter().enumerate().take(self.len()) {
            let (value, role) = (self.values[imp], self.roles[imp]);
            if imp > 0 && !grammar::is_shape(value) {
                continue;
            }
            let line = if imp > 0 { "\n" } else { "" };
            let indent = 2 * usize::from(depth);
            let _ = write!(
                text,
                "{line}{imp:>2} {:indent$}{}",
                "",
                grammar::value_name(value)
            );
            if role != grammar::THIS {
                let _ = write!(text, " ({})", grammar::role_name(role));
            }
            for child in imp + 1..self.end(imp) {
                if usize::from(self.parents[child]) == imp {
                    write_leaf(self, child, &mut text);
                }
            }
        }
        text
    }
}

impl fmt::Debug for Clan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.to_text())
    }
}

impl Clan {
    /// Returns the clan in words: the grid, then its shapes in the order of painting, each on a line with its number from 1.
    /// Cells are (column, row) from (0, 0) at the top left.
    pub fn to_words(&self) -> String {
        let background = grammar::value_name(self.values[3]);
        let mut words = format!(
            "A {background} grid, {} wide and {} high.\n",
            self.width(),
            self.height()
        );
        for (number, shape) in (1..).zip(self.shapes_in_words(0)) {
            words += &format!("{number}. {}.\n", capitalised(&shape));
        }
        words
    }

    /// Returns the shapes in the list of `imp`, or the shape of a rotation.
    fn shapes_of(&self, imp: usize) -> impl Iterator<Item = usize> + '_ {
        let is_child = move |&child: &usize| usize::from(self.parents[child]) == imp;
        let children = (imp + 1..self.end(imp)).filter(is_child);
        children.filter(|&child| grammar::is_shape(self.values[child]))
    }

    fn shapes_in_words(&self, imp: usize) -> Vec<String> {
        self.shapes_of(imp)
            .map(|shape| self.shape_in_words(shape))
            .collect()
    }

    fn shape_in_words(&self, shape: usize) -> String {
        let child = |role: u8| {
            let mut imps = shape + 1..self.end(shape);
            imps.find(|&imp| usize::from(self.parents[imp]) == shape && self.roles[imp] == role)
        };
        let named =
            |role: u8| child(role).map_or_else(String::new, |imp| grammar::value_name(self.values[imp]));
        let at = |role: u8| {
            let place = |imp: usize| {
                [1, 2]
                    .map(|leaf| grammar::value_name(self.values[imp + leaf]))
                    .join(", ")
            };
            child(role).map_or_else(String::new, |imp| format!("({})", place(imp)))
        };
        match self.values[shape] {
            DOT => format!("a {} dot at {}", named(R_COLOR), at(R_START)),
            LINE => format!(
                "a {} line of length {} from {}, {}",
                named(R_COLOR),
                named(R_LENGTH),
                at(R_START),
                named(R_DIRECTION)
            ),
            RECT => format!(
                "a {} rectangle, {} wide and {} high, at {}",
                named(R_COLOR),
                named(grammar::R_WIDTH),
                named(grammar::R_HEIGHT),
                at(R_START)
            ),
            GROUP => format!("a group ({})", self.shapes_in_words(shape).join("; ")),
            ROTATION => format!(
                "{}, turned clockwise by {} about {}",
                self.shapes_in_words(shape).join("; "),
                named(R_TURNS),
                at(R_PIVOT)
            ),
            value => grammar::value_name(value),
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// ARC's colours 0 to 9 in a terminal's palette of 256 colours: black, blue, red, green, yellow, gray, fuchsia, orange,
/// teal, crimson.
const PALETTE: [u8; 10] = [16, 26, 196, 40, 220, 245, 201, 208, 117, 88];

/// Draws each row of cells as one line: two blanks in the cell's colour, or the cell's letter (`.brgyafotc`).
pub fn lines(grid: &Grid, in_color: bool) -> Vec<String> {
    let (letters, (_, height)) = (grid.to_string(), grid.size());
    let rows = grid.cells().chunks(SIDE).zip(letters.split('\n')).take(height);
    rows.map(|(row, letters)| {
        if !in_color {
            return letters.to_owned();
        }
        let painted: String = row
            .iter()
            .map(|&cell| match PALETTE.get(usize::from(cell)) {
                Some(color) => format!("\u{1b}[48;5;{color}m  "),
                None => "\u{1b}[0m  ".into(),
            })
            .collect();
        painted + "\u{1b}[0m"
    })
    .collect()
}

/// Draws grids side by side, each under its title.
pub fn side_by_side(grids: &[(&str, &Grid)], in_color: bool) -> String {
    const WIDTH: usize = 20;
    let painted: Vec<Vec<String>> = grids.iter().map(|(_, grid)| lines(grid, in_color)).collect();
    let height = painted.iter().map(Vec::len).max().unwrap_or_default();
    let mut text: String = grids
        .iter()
        .map(|(title, _)| format!("{title:WIDTH$}"))
        .collect::<String>();
    text = text.trim_end().to_owned();
    for row in 0..height {
        let mut line = String::new();
        for lines in &painted {
            let cells = lines.get(row).map_or("", String::as_str);
            // A painted cell is two columns wide, a letter one column. ANSI escapes have no width.
            let width = match (cells.is_empty(), in_color) {
                (true, _) => 0,
                (false, true) => 2 * SIDE,
                (false, false) => cells.len(),
            };
            line += cells;
            line.extend(std::iter::repeat_n(' ', WIDTH.saturating_sub(width)));
        }
        text.push('\n');
        text += line.trim_end();
    }
    text
}

#[cfg(test)]
mod words_tests {
    use super::*;
    use crate::generator::Move;

    #[test]
    fn every_kind_of_shape_is_put_into_words() {
        let moves = [
            (1, 20),
            (3, 28),
            (0, 4),
            (5, 19),
            (8, 19),
            (0, 3),
            (11, 12),
            (17, 35),
            (0, 2),
            (11, 13),
        ];
        let clan = moves.iter().fold(Clan::start(), |clan, &(imp, made)| {
            clan.after(imp, Move(made)).unwrap()
        });
        let expected = "A green grid, 7 wide and 8 high.\n\
            1. A black rectangle, 2 wide and 1 high, at (1, 0).\n\
            2. A group (a black line of length 1 from (0, 0), down-right, turned clockwise by 90° about (3, 3); a black dot at \
            (0, 0)).\n";
        assert_eq!(clan.to_words(), expected, "{clan:?}");
    }
}

#[cfg(test)]
mod paint_tests {
    use super::*;

    #[test]
    fn grids_stand_side_by_side() {
        let grid = |rows: &[&[u8]]| {
            Grid::from_rows(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>()).unwrap()
        };
        let (one, two) = (grid(&[&[0, 1], &[2, 3]]), grid(&[&[9]]));
        let text = side_by_side(&[("target", &one), ("drawn", &two)], false);
        let expected = "target              drawn\n.b                  c\nrg";
        assert_eq!(text, expected);
        let painted = lines(&two, true);
        assert!(painted[0].starts_with("\u{1b}[48;5;88m  "), "{painted:?}");
        assert_eq!(painted.len(), 1);
    }
}
