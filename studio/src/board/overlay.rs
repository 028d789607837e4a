//! Figures of an analysis, drawn over the board.

use games::{
    Action,
    erased::AnyGame,
    scene::{Board, Clicks},
};
use maud::{Markup, html};

use super::{Geometry, View};

/// Figures of one action, each a share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The action.
    pub action: Action,
    /// Prior of the network.
    pub prior: f32,
    /// Share of the visits.
    pub visits: f32,
    /// Chance to win for the player to act; `None` without visits.
    pub value: Option<f32>,
}

/// Least share that is drawn.
const LEAST: f32 = 0.02;
/// Size of a number on a board of 8 cells, in units of the drawing.
const TEXT: usize = 25;
/// Largest number that a cell has room for.
const LARGEST_TEXT: usize = 42;
/// Actions that are drawn as arrows at once: more would hide the pieces.
const ARROWS: usize = 5;

/// A value as a share from 0 to 1: the chance to win of a player of two, the value itself in a game for one.
pub fn share(game: &AnyGame, value: f32) -> f32 {
    if game.players == 1 {
        value.clamp(0.0, 1.0)
    } else {
        ((value + 1.0) / 2.0).clamp(0.0, 1.0)
    }
}

/// Marks for the prior, the visits and the value of actions, one group for each. The actions are in the order of their importance:
/// of those that take two clicks the first few are drawn. `clicks` says where an action is played; actions without a cell are
/// left out.
pub fn overlay(clicks: impl Fn(Action) -> Clicks, board: &Board, view: View, shown: &[Figures]) -> Markup {
    let geometry = Geometry::new(board, view);
    let is_arrow = |first: &Figures| clicks(first.action).cells.len() > 1;
    let most = match shown.first().is_some_and(is_arrow) {
        true => ARROWS,
        false => shown.len(),
    };
    // Each figure comes with the share by which its mark is large.
    let marks = |figure: fn(&Figures) -> Option<(f32, f32)>| {
        html! {
            @for shown in shown.iter().take(most) {
                @if let Some((share, weight)) = figure(shown).filter(|(_, weight)| *weight >= LEAST) {
                    (mark(&clicks(shown.action), geometry, share, weight))
                }
            }
        }
    };
    html! {
        g.by-prior { (marks(|shown| Some((shown.prior, shown.prior)))) }
        g.by-visits { (marks(|shown| Some((shown.visits, shown.visits)))) }
        g.by-value { (marks(|shown| Some((shown.value?, shown.visits)))) }
    }
}

/// One action: an arrow for two clicks, a disc for one. Actions of little weight are pale and small.
fn mark(clicks: &Clicks, geometry: Geometry, share: f32, weight: f32) -> Markup {
    let cells: Vec<usize> = clicks
        .cells
        .iter()
        .filter_map(|click| click.first().copied())
        .collect();
    let opacity = format!("{:.2}", 0.3 + 0.6 * weight.clamp(0.0, 1.0).sqrt());
    let percent = format!("{:.0}", 100.0 * share);
    let size = geometry.scaled(TEXT).min(LARGEST_TEXT);
    html! {
        @match cells[..] {
            [cell] => {
                @let (x, y) = geometry.centre(cell);
                g.advice {
                    circle opacity=(opacity) cx=(x) cy=(y) r=(format!("{:.1}", 16.0 + 20.0 * weight.clamp(0.0, 1.0).sqrt())) {}
                    text x=(x) y=(y + size * 9 / TEXT) font-size=(size) text-anchor="middle" { (percent) }
                }
            }
            [from, .., to] => {
                @let ((x, y), (tox, toy)) = (geometry.centre(from), geometry.centre(to));
                g.advice {
                    line opacity=(opacity) x1=(x) y1=(y) x2=(tox) y2=(toy) stroke-width=(format!("{:.1}", 5.0 + 11.0 * weight.clamp(0.0, 1.0).sqrt())) {}
                    circle opacity=(opacity) cx=(tox) cy=(toy) r="24" {}
                    text x=(tox) y=(toy + size * 9 / TEXT) font-size=(size) text-anchor="middle" { (percent) }
                }
            }
            [] => {}
        }
    }
}
