//! Grids as text: in ARC's colours for a terminal, or as letters.

use super::grid::{ABSENT, Grid, SIDE};

/// ARC's colours 0 to 9 in a terminal's palette of 256 colours: black, blue, red, green, yellow, gray, fuchsia, orange,
/// teal, crimson.
const PALETTE: [u8; 10] = [16, 26, 196, 40, 220, 245, 201, 208, 117, 88];

/// Draws each row of cells as one line: two blanks in the cell's colour, or the cell's letter (`.brgyafotc`).
pub fn lines(grid: &Grid, in_color: bool) -> Vec<String> {
    let letters = grid.to_string();
    let height = grid
        .cells()
        .chunks(SIDE)
        .filter(|row| row.iter().any(|&cell| cell != ABSENT))
        .count();
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
mod tests {
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
