//! [`small`]: a position as a picture of a few hundred bytes, for lists of games.

use std::fmt::Write as _;

use games::{
    Player,
    scene::{Board, Scene, Surface},
};
use maud::{Markup, html};

/// Draws the boards of a scene without labels, marks and roles: all discs of a player are one path, all other pieces one text.
/// Assistive programs skip the picture.
pub fn small(scene: &Scene) -> Markup {
    html! { @for board in &scene.boards { (draw(board)) } }
}

fn draw(board: &Board) -> Markup {
    let columns = board.columns.len().max(1);
    let rows = board.rows.len();
    let is_slanted = board.surface == Surface::Hexagons;
    let shift = |row: usize| if is_slanted { row as f32 / 2.0 } else { 0.0 };
    let width = columns as f32 + shift(rows.saturating_sub(1));
    let surface = match board.surface {
        Surface::Checkered => "light",
        Surface::Plain => "plain",
        Surface::Holes => "holes",
        Surface::Painted => "painted",
        Surface::Lines => "wood",
        Surface::Hexagons => "hexagon",
    };
    let places = || {
        let cells = board.cells.iter().enumerate();
        cells.map(move |(cell, content)| {
            let row = cell / columns;
            ((cell % columns) as f32 + shift(row), row as f32, content)
        })
    };
    let outline = match is_slanted {
        true => format!("M0 0H{columns}L{width} {rows}H{}z", width - columns as f32),
        false => format!("M0 0H{width}V{rows}H0z"),
    };
    html! {
        svg.small viewBox=(format!("0 0 {width} {rows}")) aria-hidden="true" {
            path class=(surface) d=(outline) {}
            @for paint in 1..=9 {
                @let squares = path(places().filter(|(.., cell)| cell.paint == Some(paint)), "h1v1h-1z", 0.0);
                @if !squares.is_empty() { path class=(format!("paint-{paint}")) d=(squares) {} }
            }
            @for player in [Player::First, Player::Second] {
                @let look = format!("piece {}", board.colors[player.index()]);
                @let is_disc = |kind: &str| kind == "disc";
                @let discs = places().filter(|(.., cell)| cell.pieces.iter().any(|piece| piece.player == player && is_disc(piece.kind)));
                @let discs = path(discs, "h0", 0.5);
                @if !discs.is_empty() { path class=(format!("discs {look}")) d=(discs) {} }
                @let (text, [across, down]) = symbols(places().flat_map(|(x, y, cell)| {
                    let own = cell.pieces.iter().filter(move |piece| piece.player == player && !is_disc(piece.kind));
                    // Both pieces of a union are seen.
                    let aside = if cell.pieces.len() > 1 { 0.2 * (2.0 * player.index() as f32 - 1.0) } else { 0.0 };
                    own.map(move |piece| (x + aside, y + 0.85, piece.symbol))
                }));
                @if !text.is_empty() { text class=(look) x=(across) y=(down) { (text) } }
            }
        }
    }
}

/// A path that draws `stroke` at each place, `offset` to the right of and below its corner.
fn path<T>(places: impl Iterator<Item = (f32, f32, T)>, stroke: &str, offset: f32) -> String {
    places.fold(String::new(), |mut path, (x, y, _)| {
        // Writing to a text cannot fail.
        let _ = write!(path, "M{} {}{stroke}", x + offset, y + offset);
        path
    })
}

/// Symbols in a row, with the place of each across and down.
fn symbols(pieces: impl Iterator<Item = (f32, f32, char)>) -> (String, [String; 2]) {
    let mut all = (String::new(), [String::new(), String::new()]);
    for (x, y, symbol) in pieces {
        all.0.push(symbol);
        let _ = write!(all.1[0], "{x} ");
        let _ = write!(all.1[1], "{y} ");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::state;

    /// True if discs have no colour. An element with two attributes of one name keeps the first.
    fn discs_without_colour(picture: &str) -> bool {
        picture.contains("h0") && !picture.contains("<path class=\"discs piece ")
    }

    #[test]
    fn a_picture_has_all_pieces_in_few_bytes() {
        for (game, most) in [
            ("connect-four", 300),
            ("othello", 400),
            ("chess", 900),
            ("paco-sako", 900),
            ("hex:11", 300),
        ] {
            let state = state(game, None);
            let scene = state.scene(&[]);
            let picture = small(&scene).into_string();
            assert!(picture.len() < most, "{game}: {} bytes: {picture}", picture.len());
            let pieces: Vec<_> = scene.boards[0]
                .cells
                .iter()
                .flat_map(|cell| &cell.pieces)
                .collect();
            assert!(!discs_without_colour(&picture), "{game}: {picture}");
            let discs = picture.matches("h0").count();
            let symbols = pieces
                .iter()
                .filter(|piece| piece.kind != "disc")
                .all(|piece| picture.contains(piece.symbol));
            assert!(symbols, "{game}: {picture}");
            assert_eq!(
                discs,
                pieces.iter().filter(|piece| piece.kind == "disc").count(),
                "{game}"
            );
        }
    }
}
