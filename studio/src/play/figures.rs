//! Figures of searches: the bar, the rows of the analysis, marks on the board.

use games::{Action, Notation, Player, scene::Scene};
use maud::{Markup, html};

use super::{
    analysis::{Analysis, share},
    table::{Inner, Table},
    turns::{clicked, first_turn, line_text},
};
use crate::{
    board::{self, Shown, View},
    figures::words::count,
};

/// Visits below which a figure is shown as unsure.
const UNSURE: u32 = 10;
/// Rows of the analysis that are shown.
const ROWS: usize = 10;

/// Moves that are drawn as arrows at once.
const ARROWS: usize = 5;

/// Share of the first player as a bar, with its source.
pub(super) fn bar<G: Notation>(table: &Table<G>, inner: &Inner<G>, analysis: Option<&Analysis>) -> Markup {
    let known = match analysis.filter(|analysis| inner.is_analysing && analysis.visits > 0) {
        Some(analysis) => Some((analysis.value.get(), analysis.visits, analysis.by.as_str())),
        None => inner
            .last_value
            .filter(|_| inner.is_at_end())
            .map(|(value, visits)| (value, visits, table.seats.opponent.name.as_str())),
    };
    let first = G::player_name(Player::First);
    html! {
        @match known {
            Some((value, visits, name)) => {
                @let share = share::<G>(value);
                @let percent = format!("{:.0}", 100.0 * share);
                svg viewBox="0 0 20 100" preserveAspectRatio="none" aria-hidden="true" .unsure[visits < UNSURE] {
                    rect.second width="20" height="100" {}
                    rect.first width="20" height=(percent) y=(format!("{:.0}", 100.0 - 100.0 * share)) {}
                    line x1="0" x2="20" y1="50" y2="50" {}
                }
                span.figure title=(format!("{first}'s chances: {name}, {visits} visits")) { (percent) " %" }
            }
            None => {
                svg viewBox="0 0 20 100" preserveAspectRatio="none" aria-hidden="true" { rect.none width="20" height="100" {} }
                span.figure.quiet title="No evaluation yet" { "–" }
            }
        }
    }
}

/// A value as whole percents.
pub(super) fn percent<G: Notation>(value: f32) -> String {
    format!("{:.0} %", 100.0 * share::<G>(value))
}

/// Best actions with prior, visits, value and line.
pub(super) fn rows<G: Notation>(state: &G, analysis: &Analysis, exact: &[(Action, i8)]) -> Markup {
    let all: u32 = analysis.rows.iter().map(|row| row.visits).sum();
    html! {
        p.quiet.small {
            (analysis.by) " · " (count(analysis.visits.into())) " visits · " (G::player_name(analysis.mover)) "’s chances"
        }
        table {
            thead { tr {
                th scope="col" { "Move" }
                th scope="col" { "Prior" }
                th scope="col" { "Visits" }
                th scope="col" { "Value" }
                @if G::HAS_SOLVER { th scope="col" { "Exact" } }
                th scope="col" { "Line" }
            } }
            tbody {
                @for row in analysis.rows.iter().take(ROWS) {
                    tr .unsure[row.visits < UNSURE] {
                        th scope="row" {
                            button.link type="button" data-action=(row.action) { (state.write_turn(&[row.action])) }
                        }
                        td { (format!("{:.0} %", 100.0 * row.prior)) }
                        td {
                            svg.share viewBox="0 0 40 4" preserveAspectRatio="none" aria-hidden="true" {
                                rect width=(format!("{:.1}", 40.0 * row.visits as f32 / all.max(1) as f32)) height="4" {}
                            }
                            (count(row.visits.into()))
                        }
                        td { @match row.value { Some(value) => { (percent::<G>(value.get())) } None => { "–" } } }
                        @if G::HAS_SOLVER { td { (verdict(exact, row.action)) } }
                        td.line { (line_text(state, &row.line)) }
                    }
                }
            }
        }
    }
}

/// Exact value in a word.
fn verdict(exact: &[(Action, i8)], action: Action) -> Markup {
    let found = exact
        .iter()
        .find(|(known, _)| *known == action)
        .map(|(_, value)| value);
    match found {
        Some(1..) => html! { b.win { "wins" } },
        Some(0) => html! { "draws" },
        Some(_) => html! { span.loss { "loses" } },
        None => html! { span.quiet { "…" } },
    }
}

/// Hinted cells, and figures of the analysis on the board.
pub(super) fn overlay<G: Notation>(inner: &Inner<G>, state: &G, scene: &Scene, view: View) -> Markup {
    let Some(board) = scene.boards.first() else {
        return Markup::default();
    };
    let geometry = board::Geometry::new(board, view);
    let hinted: Vec<usize> = match (
        inner.hint,
        inner.analysis.as_ref().and_then(|known| known.rows.first()),
    ) {
        (stage @ 1.., Some(row)) if row.visits > 0 => {
            let cells = clicked(state, &first_turn(state, &row.line));
            match (stage, &cells[..]) {
                // One click would give the move away.
                (1, [_]) => Vec::new(),
                (1, [first, ..]) => vec![*first],
                _ => cells,
            }
        }
        _ => Vec::new(),
    };
    let shown = |analysis: &Analysis| -> Vec<(Action, Shown)> {
        let all: u32 = analysis.rows.iter().map(|row| row.visits).sum();
        let figures = analysis.rows.iter().map(|row| {
            let shown = Shown {
                prior: row.prior,
                visits: row.visits as f32 / all.max(1) as f32,
                value: row.value.map(|value| share::<G>(value.get())),
            };
            (row.action, shown)
        });
        // More arrows than a few would hide the pieces.
        let first = analysis
            .rows
            .first()
            .map(|row| state.clicks(row.action).cells.len());
        let most = if first >= Some(2) { ARROWS } else { usize::MAX };
        figures.take(most).collect()
    };
    html! {
        @for cell in hinted {
            @let (x, y) = geometry.centre(cell);
            circle.hinted cx=(x) cy=(y) r="44" {}
        }
        @if let Some(analysis) = inner.analysis.as_ref().filter(|_| inner.is_analysing) {
            (board::overlay(|action| state.clicks(action), board, view, shown(analysis).into_iter()))
        }
    }
}
