//! Lines and sides of boards that are not made of squares, as data of SVG paths.

use super::{CELL, Geometry, HEX_STEP, PEAK};

/// Height of a hexagon's corners next to its peak, below the upper edge of the cell.
const SHOULDER: usize = CELL + PEAK - HEX_STEP;
/// Width of the sides in the players' colours, of which the hexagons hide the inner half.
pub(super) const EDGE: usize = 36;
/// Outline of a hexagon around a cell of 100×100 units.
pub(super) const HEXAGON: &str = "M50-8 100 21V79L50 108 0 79V21Z";

/// Lines through the centres of all cells, which end at the centres at the edge.
pub(super) fn grid(geometry: Geometry) -> String {
    let centre = |column: usize, row: usize| {
        let (x, y) = geometry.corner_at(column, row);
        (x + CELL / 2, y + CELL / 2)
    };
    let (columns, rows) = (geometry.columns, geometry.rows);
    let across = (0..rows).map(|row| {
        let ((x, y), (end, _)) = (centre(0, row), centre(columns.saturating_sub(1), row));
        format!("M{x} {y}H{end}")
    });
    let down = (0..columns).map(|column| {
        let ((x, y), (_, end)) = (centre(column, 0), centre(column, rows.saturating_sub(1)));
        format!("M{x} {y}V{end}")
    });
    across.chain(down).collect()
}

/// Sides of a board of hexagons: those at the top and at the bottom, then those at the left and at the right.
pub(super) fn sides(geometry: Geometry) -> [String; 2] {
    let (columns, rows) = (geometry.columns, geometry.rows);
    let zigzag = |corners: Vec<(usize, usize)>| -> String {
        let points = corners.iter().enumerate();
        points
            .map(|(number, (x, y))| format!("{}{x} {y}", if number == 0 { "M" } else { "L" }))
            .collect()
    };
    let (last_column, last_row) = (columns.saturating_sub(1), rows.saturating_sub(1));
    let top = (0..columns).flat_map(|column| {
        let (x, y) = geometry.corner_at(column, 0);
        [
            (x, y + SHOULDER),
            (x + CELL / 2, y - PEAK),
            (x + CELL, y + SHOULDER),
        ]
    });
    let bottom = (0..columns).flat_map(|column| {
        let (x, y) = geometry.corner_at(column, last_row);
        let low = y + CELL - SHOULDER;
        [(x, low), (x + CELL / 2, y + CELL + PEAK), (x + CELL, low)]
    });
    let along = |column: usize, right: usize| {
        (0..rows).flat_map(move |row| {
            let (x, y) = geometry.corner_at(column, row);
            [(x + right, y + SHOULDER), (x + right, y + CELL - SHOULDER)]
        })
    };
    let [top, bottom] = [zigzag(top.collect()), zigzag(bottom.collect())];
    let [left, right] =
        [(0, 0), (last_column, CELL)].map(|(column, right)| zigzag(along(column, right).collect()));
    [top + &bottom, left + &right]
}
