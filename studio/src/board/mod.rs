//! A position as SVG: one renderer for the boards of all games.
//!
//! The drawing has classes in place of colours, which `board.css` gives for light and for dark. An interactive board is a
//! grid to assistive programs: rows of cells with names, of which one is in the order of focus. `board.js` brings the clicks.

mod overlay;
mod pieces;
mod small;
mod surface;

pub use overlay::{Figures, overlay, share};
pub use pieces::pieces;
pub use small::small;

use games::{
    Player,
    scene::{Board, Cell, Hand, Piece, Scene, Surface},
};
use maud::{Markup, html};

/// Side of a cell in units of the drawing, and the width of a hexagon.
const CELL: usize = 100;
/// Distance of two rows of hexagons. With [`PEAK`] it makes their sides equal within 1 %, in whole units.
const HEX_STEP: usize = 87;
/// Height of a hexagon's peak above the cell.
const PEAK: usize = 8;
/// Room for the labels of columns and rows next to 8 cells. It grows with the board, which is drawn smaller.
const MARGIN: usize = 36;
/// Size of the labels next to 8 cells.
const LABEL: usize = 26;

/// Way in which a board is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The second player sits at the lower edge.
    pub flipped: bool,
    /// Cells can be clicked and have the focus.
    pub interactive: bool,
}

/// All boards of a scene, from left to right, each with its title.
pub fn boards(scene: &Scene, view: View) -> Markup {
    boards_with(scene, view, &Markup::default())
}

/// All boards of a scene, with an [`overlay`] on the first.
pub fn boards_with(scene: &Scene, view: View, over: &Markup) -> Markup {
    html! {
        div.boards {
            @for (number, board) in scene.boards.iter().enumerate() {
                figure.board {
                    @if !board.title.is_empty() { figcaption { (board.title) } }
                    (draw(scene, board, view, (number == 0).then_some(over)))
                }
            }
        }
    }
}

/// The boards of a scene in a text, next to the one that is played on.
pub fn illustration(scene: &Scene) -> Markup {
    html! { @for board in &scene.boards { (draw(scene, board, View::default(), None)) } }
}

/// A position, with what its board does not show. A page that draws positions has [`pieces`] once.
pub fn position(scene: &Scene) -> Markup {
    html! {
        (boards(scene, View::default()))
        @if let Some(hand) = &scene.hand {
            p { "In the hand, lifted from " (hand.square) ": " @for piece in &hand.pieces { (piece.symbol) " " } }
        }
        (notes(scene))
    }
}

/// The remark of a scene and its tree of parts, as text.
pub fn notes(scene: &Scene) -> Markup {
    html! {
        @if !scene.remark.is_empty() { p { (scene.remark) } }
        @if !scene.tree.is_empty() {
            pre.notes { @for part in &scene.tree { ("  ".repeat(usize::from(part.depth))) (part.text) "\n" } }
        }
    }
}

/// Geometry of one board: places of cells, as the view turns it.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    columns: usize,
    rows: usize,
    turned: bool,
    surface: Surface,
    has_labels: bool,
}

impl Geometry {
    /// Geometry of `board` in `view`.
    pub fn new(board: &Board, view: View) -> Self {
        let has_labels = board
            .columns
            .iter()
            .chain(&board.rows)
            .any(|label| !label.is_empty());
        Self {
            columns: board.columns.len(),
            rows: board.rows.len(),
            turned: view.flipped && board.is_turned_for_second,
            surface: board.surface,
            has_labels,
        }
    }

    /// Width and height of the cells together.
    fn area(self) -> (usize, usize) {
        let (columns, rows) = (self.columns, self.rows);
        match self.surface {
            Surface::Hexagons => (
                columns * CELL + rows.saturating_sub(1) * CELL / 2,
                rows.saturating_sub(1) * HEX_STEP + CELL + 2 * PEAK,
            ),
            _ => (columns * CELL, rows * CELL),
        }
    }

    /// A length that is `units` next to 8 cells, and in proportion next to more.
    fn scaled(self, units: usize) -> usize {
        let (width, height) = self.area();
        units * width.max(height).max(8 * CELL) / (8 * CELL)
    }

    fn margin(self) -> usize {
        let sides = match self.surface {
            Surface::Hexagons => surface::EDGE / 2,
            _ => 0,
        };
        if self.has_labels {
            self.scaled(MARGIN) + sides
        } else {
            0
        }
    }

    /// Column and row of a cell as drawn, from the top left.
    fn place(self, cell: usize) -> (usize, usize) {
        let (column, row) = (cell % self.columns.max(1), cell / self.columns.max(1));
        if self.turned {
            (
                (self.columns - 1).saturating_sub(column),
                (self.rows - 1).saturating_sub(row),
            )
        } else {
            (column, row)
        }
    }

    /// Upper left corner of a cell.
    fn corner(self, cell: usize) -> (usize, usize) {
        let (column, row) = self.place(cell);
        self.corner_at(column, row)
    }

    /// Upper left corner of the cell in a column and a row as drawn.
    fn corner_at(self, column: usize, row: usize) -> (usize, usize) {
        let left = self.margin() + column * CELL;
        match self.surface {
            Surface::Hexagons => (left + row * CELL / 2, row * HEX_STEP + PEAK),
            _ => (left, row * CELL),
        }
    }

    /// Centre of a cell.
    pub fn centre(self, cell: usize) -> (usize, usize) {
        let (x, y) = self.corner(cell);
        (x + CELL / 2, y + CELL / 2)
    }
}

/// Draws a board. `over`: drawing over the first board; `None` for the others.
fn draw(scene: &Scene, board: &Board, view: View, over: Option<&Markup>) -> Markup {
    let is_first = over.is_some();
    let geometry = Geometry::new(board, view);
    let (width, height) = geometry.area();
    let margin = geometry.margin();
    let interactive = view.interactive && is_first && board.surface != Surface::Painted;
    let cell_at = |column: usize, row: usize| {
        // The inverse of `place`, which is its own inverse.
        let (column, row) = geometry.place(row * geometry.columns + column);
        row * geometry.columns + column
    };
    html! {
        svg.scene
            viewBox=(format!("0 0 {} {}", margin + width, height + margin))
            data-board=[is_first.then_some("")]
            data-columns=(geometry.columns)
            data-turned=[geometry.turned.then_some("")]
            data-turnable=[board.is_turned_for_second.then_some("")]
            role=(if interactive { "grid" } else { "img" })
            aria-label=(if interactive { "Board".to_owned() } else { summary(scene, board) }) {
            @match board.surface {
                Surface::Holes => { rect.frame x=(margin) y="0" width=(width) height=(height) rx="18" {} }
                Surface::Lines => {
                    rect.wood x=(margin) y="0" width=(width) height=(height) rx="12" {}
                    path.grid d=(surface::grid(geometry)) {}
                }
                Surface::Hexagons => {
                    @for (color, side) in board.colors.iter().zip(surface::sides(geometry)) {
                        path class=(format!("edge {color}")) d=(side) stroke-width=(surface::EDGE) {}
                    }
                }
                Surface::Checkered | Surface::Plain | Surface::Painted => {}
            }
            @for row in 0..geometry.rows {
                g role=[interactive.then_some("row")] {
                    @for column in 0..geometry.columns {
                        @let cell = cell_at(column, row);
                        @if let Some(content) = board.cells.get(cell) {
                            (draw_cell(board, content, cell, geometry, interactive))
                        }
                    }
                }
            }
            @if geometry.has_labels { (labels(board, geometry)) }
            @if let Some(over) = over {
                g.overlay data-slot="overlay" aria-hidden="true" { (over) }
                @if let Some(hand) = &scene.hand { (draw_hand(board, hand, geometry)) }
                g.moving aria-hidden="true" {}
            }
        }
    }
}

fn draw_cell(board: &Board, content: &Cell, cell: usize, geometry: Geometry, interactive: bool) -> Markup {
    let (x, y) = geometry.corner(cell);
    let columns = board.columns.len();
    let shade = match board.surface {
        Surface::Checkered if (cell / columns + cell % columns).is_multiple_of(2) => "light",
        Surface::Checkered => "dark",
        Surface::Plain => "plain",
        Surface::Holes => "hole",
        Surface::Painted => "painted",
        Surface::Lines => "point",
        Surface::Hexagons => "hexagon",
    };
    let paint = content.paint.map(|paint| format!("paint-{paint}"));
    html! {
        g.cell .last[content.is_last] .playable[content.is_playable]
            transform=(format!("translate({x} {y})"))
            data-cell=(cell)
            role=[interactive.then_some("gridcell")]
            tabindex=[interactive.then_some("-1")]
            aria-label=[interactive.then(|| label(board, content, cell))] {
            @match (board.surface, &paint) {
                (Surface::Holes, _) => {
                    rect.back width=(CELL) height=(CELL) {}
                    circle.hole cx="50" cy="50" r="40" {}
                }
                (Surface::Painted, Some(paint)) => { rect class=(format!("square {paint}")) width=(CELL) height=(CELL) {} }
                (Surface::Painted, None) => {}
                (Surface::Hexagons, _) => { path class="square hexagon" d=(surface::HEXAGON) {} }
                _ => { rect class=(format!("square {shade}")) width=(CELL) height=(CELL) {} }
            }
            @match (content.is_last, board.surface) {
                (false, _) | (true, Surface::Lines) => {}
                (true, Surface::Hexagons) => { path.mark d=(surface::HEXAGON) transform="translate(5 5) scale(.9)" {} }
                (true, _) => { rect.mark x="3" y="3" width="94" height="94" rx="6" {} }
            }
            @if content.is_star && content.pieces.is_empty() { circle.star cx="50" cy="50" r="10" {} }
            @if content.is_playable && content.pieces.is_empty() { circle.playable cx="50" cy="50" r="9" {} }
            (pieces_on(board, &content.pieces))
            @if content.is_last && board.surface == Surface::Lines { circle.mark cx="50" cy="50" r="23" {} }
            @if let Some(owner) = content.owner.filter(|&owner| content.pieces.iter().all(|piece| piece.player != owner)) {
                rect class=(format!("owner {}", board.colors[owner.index()])) x="35" y="35" width="30" height="30" {}
            }
        }
    }
}

/// Pieces of one cell. Two of them form a union: they are drawn close together, on one floor.
fn pieces_on(board: &Board, pieces: &[Piece]) -> Markup {
    html! {
        @match pieces {
            [] => {}
            [piece] => { (draw_piece(board, piece, "translate(4 4) scale(.92)")) }
            [first, second, ..] => {
                g.union {
                    ellipse.floor cx="51" cy="86" rx="45" ry="10" {}
                    (draw_piece(board, first, "translate(-3 12) scale(.68)"))
                    (draw_piece(board, second, "translate(35 25) scale(.68)"))
                }
            }
        }
    }
}

/// One piece in a box of 100×100 units, moved by `transform`.
fn draw_piece(board: &Board, piece: &Piece, transform: &str) -> Markup {
    let color = board.colors[piece.player.index()];
    let side = match piece.player {
        Player::First => "first",
        Player::Second => "second",
    };
    let drawing = match (board.surface, piece.kind) {
        (Surface::Lines, "disc") => "stone",
        (_, kind) => kind,
    };
    html! {
        use class=(format!("piece {side} {color}")) href=(format!("#piece-{drawing}")) width="100" height="100"
            transform=(transform) data-player=(side) {}
    }
}

/// Pieces in the hand, above the cell they were lifted from.
fn draw_hand(board: &Board, hand: &Hand, geometry: Geometry) -> Markup {
    let (x, y) = geometry.corner(hand.cell);
    html! {
        g.hand data-hand=(hand.cell) aria-hidden="true" transform=(format!("translate({} {})", x + 34, y.saturating_sub(38))) {
            ellipse.shadow cx="50" cy="96" rx="30" ry="7" {}
            (pieces_on(board, &hand.pieces))
        }
    }
}

fn labels(board: &Board, geometry: Geometry) -> Markup {
    let columns = geometry.columns;
    let middle = CELL / 2;
    let (_, height) = geometry.area();
    let margin = geometry.margin();
    html! {
        g.labels aria-hidden="true" font-size=(geometry.scaled(LABEL)) {
            @for (number, label) in board.columns.iter().enumerate() {
                @let (column, _) = geometry.place(number);
                @let (x, _) = geometry.corner_at(column, geometry.rows.saturating_sub(1));
                text x=(x + middle) y=(height + margin - geometry.scaled(8)) text-anchor="middle" { (label) }
            }
            @for (number, label) in board.rows.iter().enumerate() {
                @let (_, row) = geometry.place(number * columns);
                @let (x, y) = geometry.corner_at(0, row);
                text x=(x + geometry.scaled(14) - margin) y=(y + middle + geometry.scaled(9)) text-anchor="middle" { (label) }
            }
        }
    }
}

/// Name of a cell and its pieces, e.g. `e4, White pawn and Black knight`.
fn label(board: &Board, content: &Cell, cell: usize) -> String {
    let columns = board.columns.len().max(1);
    let name = match board.rows.get(cell / columns) {
        Some(label) if label.is_empty() => format!(
            "column {}, row {} from below",
            board.columns.get(cell % columns).map_or("", String::as_str),
            board.rows.len() - cell / columns
        ),
        _ => board.name(cell),
    };
    let pieces: Vec<String> = content
        .pieces
        .iter()
        .map(|piece| format!("{} {}", board.colors[piece.player.index()], piece.kind))
        .collect();
    let content_text = match (pieces.is_empty(), content.is_playable) {
        (true, true) => "can be played".into(),
        (true, false) => content.owner.map_or_else(
            || "empty".into(),
            |owner| format!("point of {}", board.colors[owner.index()]),
        ),
        (false, _) => pieces.join(" and "),
    };
    format!("{name}, {content_text}")
}

/// One sentence about a board, for those who do not see it.
fn summary(scene: &Scene, board: &Board) -> String {
    let names: Vec<String> = (0..board.cells.len())
        .filter(|&cell| !board.cells[cell].pieces.is_empty())
        .map(|cell| label(board, &board.cells[cell], cell))
        .collect();
    let mover = scene.players[scene.to_move.index()];
    match (board.title, names.is_empty()) {
        ("", true) => format!("Empty board, {mover} to move"),
        ("", false) => format!("{mover} to move; {}", names.join("; ")),
        (title, _) => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use games::{Notation, connect_four::ConnectFour, paco_sako::PacoSako, registry, scene::Squares};

    use super::*;

    fn drawn<G: Notation>(position: Option<&str>, turns: &[&str], view: View) -> String {
        let mut state = G::start(&G::people_rules(), position).unwrap();
        for turn in turns {
            for action in state.read_turn(turn).unwrap() {
                state.play(action).unwrap();
            }
        }
        boards(&state.scene(&[]), view).into_string()
    }

    #[test]
    fn a_union_and_the_hand_are_drawn_and_named() {
        let view = View {
            interactive: true,
            ..View::default()
        };
        let chain = drawn::<PacoSako>(Some("4k3/8/4p3/3a4/8/8/8/3RK3 w 0 - - -"), &["d1 d5"], view);
        // The rook and the freed pawn's place; the pawn itself is in the hand, over d5 (cell 27).
        assert!(chain.contains(r##"data-hand="27""##), "{chain}");
        assert!(chain.contains("d5, white rook and black pawn"), "{chain}");
        assert_eq!(chain.matches("role=\"row\"").count(), 8);
        assert_eq!(chain.matches("role=\"gridcell\"").count(), 64);
    }

    #[test]
    fn a_turned_board_has_its_first_cell_at_the_lower_right() {
        let place = |flipped| {
            let view = View {
                flipped,
                ..View::default()
            };
            let board = drawn::<games::chess::Chess>(None, &[], view);
            let cell = board.find("data-cell=\"0\"").unwrap();
            let transform = board[..cell].rfind("translate(").unwrap();
            board[transform..cell].split('"').next().unwrap().to_owned()
        };
        assert_eq!(place(false), "translate(36 0)");
        assert_eq!(place(true), "translate(736 700)");
    }

    /// Plays turns of a game of any size, and draws the end with the last turn marked.
    fn played(game: &str, turns: &[&str]) -> String {
        let game = registry::find(game).unwrap();
        let variant = game.variant(&game.people_rules(), None).unwrap();
        let mut state = variant.start(None).unwrap();
        let mut last = Vec::new();
        for turn in turns {
            last = state.read_turn(turn).unwrap();
            for &action in &last {
                state.play(action).unwrap();
            }
        }
        boards(&state.scene(&last), View::default()).into_string()
    }

    #[test]
    fn a_board_of_lines_has_crossings_stones_and_one_marked_stone() {
        let board = played("go:9", &["c3", "e5", "g7"]);
        assert_eq!(board.matches("#piece-stone").count(), 3);
        assert_eq!(board.matches("class=\"mark\"").count(), 1);
        // Stones cover three of the five star points.
        assert_eq!(board.matches("class=\"star\"").count(), 2);
        // The lines begin and end at the centres of the cells at the edge: 9 across and 9 down.
        assert_eq!(
            (board.matches("H890").count(), board.matches("V850").count()),
            (9, 9)
        );
        assert!(
            board.contains("M90 50H890") && board.contains("M90 50V850"),
            "{board}"
        );
        assert!(
            board.contains(">j</text>") && !board.contains(">i</text>"),
            "{board}"
        );
    }

    #[test]
    fn labels_grow_with_a_board_that_is_drawn_smaller() {
        let size = |game: &str| {
            let board = played(game, &[]);
            let size = board.split("font-size=\"").nth(1).unwrap().split('"').next();
            size.unwrap().parse::<usize>().unwrap()
        };
        assert_eq!((size("chess"), size("go:5"), size("go:19")), (26, 26, 61));
    }

    #[test]
    fn points_have_their_owner_once_the_game_is_over() {
        let turns = ["b1", "d1", "b2", "d2", "b3", "d3", "b4", "d4", "b5", "d5"];
        assert!(!played("go:5", &turns).contains("owner"));
        let over = played("go:5", &[&turns[..], &["pass", "pass"]].concat());
        let owners = |color: &str| over.matches(&format!("class=\"owner {color}\"")).count();
        // File a is Black's, file e is White's, file c is nobody's.
        assert_eq!((owners("black"), owners("white")), (5, 5));
    }

    /// A parallelogram of n×m hexagons has 2·(n+1)·(m+1) − 2 different corners, if they tile it.
    #[test]
    fn hexagons_tile_the_board_and_its_sides_run_along_their_corners() {
        let (rows, columns) = (3, 5);
        let board = Board {
            surface: Surface::Hexagons,
            ..Board::of_squares(Squares::new(rows, columns), |_| Cell::default())
        };
        let geometry = Geometry::new(&board, View::default());
        let mut corners = BTreeSet::new();
        for cell in 0..board.cells.len() {
            let (x, y) = geometry.corner(cell);
            let outline = [(50, -8), (100, 21), (100, 79), (50, 108), (0, 79), (0, 21)];
            corners.extend(outline.map(|(right, down)| (x as i64 + right, y as i64 + down)));
        }
        assert_eq!(corners.len() as u32, 2 * (rows + 1) * (columns + 1) - 2);
        let sides = surface::sides(geometry).concat().replace('M', "L");
        let points: BTreeSet<(i64, i64)> = sides
            .split('L')
            .filter_map(|point| point.split_once(' '))
            .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
            .collect();
        // Each side of n hexagons has 2n + 1 corners, those at the left and at the right without the peaks of their ends.
        assert!(points.is_subset(&corners), "{points:?}");
        assert_eq!(points.len() as u32, 2 * (2 * columns + 1) + 2 * (2 * rows - 2));
        let (width, height) = geometry.area();
        let ends = (
            corners.iter().map(|(x, _)| *x).max(),
            corners.iter().map(|(_, y)| *y).max(),
        );
        assert_eq!(
            ends,
            (Some((width + geometry.margin()) as i64), Some(height as i64))
        );
    }

    #[test]
    fn connect_four_is_not_turned_and_has_42_holes() {
        let view = View {
            flipped: true,
            interactive: true,
        };
        let board = drawn::<ConnectFour>(None, &["4"], view);
        assert_eq!(board.matches("class=\"hole\"").count(), 42);
        assert!(board.contains("column 4, row 1 from below, red disc"), "{board}");
    }
}
