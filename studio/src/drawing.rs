//! Drawings of positions on the pages about a run.
//!
//! A page that draws positions has [`shapes`] once.

use games::scene::Scene;
use maud::{Markup, html};

use crate::board::{self, View, boards};

/// Shapes of the pieces, to which the drawings refer.
pub fn shapes() -> Markup {
    board::pieces()
}

/// A position, with what its board does not show.
pub fn position(scene: &Scene) -> Markup {
    html! {
        (small(scene))
        @if let Some(hand) = &scene.hand {
            p { "In the hand, lifted from " (hand.square) ": " @for piece in &hand.pieces { (piece.symbol) " " } }
        }
        @if !scene.remark.is_empty() { p { (scene.remark) } }
        @if !scene.tree.is_empty() {
            pre.notes { @for part in &scene.tree { ("  ".repeat(usize::from(part.depth))) (part.text) "\n" } }
        }
    }
}

/// The boards alone.
pub fn small(scene: &Scene) -> Markup {
    boards(scene, View::default())
}
