//! The view of a table: pieces of HTML with the names of their places. Words and moves, figures of searches, marks on the board.

use games::{
    Action, Player,
    erased::{AnyGame, AnyState},
    scene::Scene,
};
use maud::{Markup, html};
use serde_json::json;

use super::{
    jobs::Analysis,
    offers::{Offer, offers},
    review,
    table::{Inner, Kind, Shown, Table},
    threat::Threat,
};
use crate::{
    board::{self, Figures, View, share},
    figures::words::count,
    live::Slots,
};

/// Visits below which a figure is shown as unsure.
const UNSURE: u32 = 10;
/// Rows of the analysis that are shown.
const ROWS: usize = 10;

/// Draws all pieces.
pub(super) fn shown(table: &Table, inner: &Inner, view: View) -> Shown {
    let state = &*inner.shown();
    let scene = state.scene(last_turn(inner));
    let is_given_up = inner.resigned.is_some() && inner.is_at_end();
    let is_persons = !table.is_computers(state) && state.outcome().is_none() && !is_given_up;
    let mut offers = offers(state);
    let named = named(&offers, is_persons);
    offers.retain(|_| is_persons);
    let analysis = inner.analysis.as_ref();
    let rows = analysis
        .filter(|_| inner.is_analysing)
        .map(|analysis| rows(state, analysis, &inner.exact));
    let html = Slots::default()
        .with("board", board::boards(&scene, view))
        .with("overlay", overlay(inner, state, &scene, view))
        .with("status", status(table, inner, state, &scene.remark))
        .with("ending", ending(table, inner))
        .with("review", review::shown(table, inner))
        .with("moves", moves(inner))
        .with("named", named)
        .with("legal", legal(&offers))
        .with("tree", tree(&scene))
        .with("bar", bar(table, inner, analysis))
        .with("analysis", rows.unwrap_or_default())
        .with("position", html! { code { (state.position()) } });
    Shown {
        html,
        offers,
        flags: json!({ "at": inner.at, "analysing": inner.is_analysing, "paused": inner.is_paused, "over": inner.is_over() }),
    }
}

/// Actions of the last turn before the position that is shown. A turn that is not complete counts with the one before it.
fn last_turn(inner: &Inner) -> &[Action] {
    let actions = &inner.course.actions()[..inner.at];
    let first = inner.course.turns().iter().rfind(|turn| turn.first < inner.at);
    &actions[first.map_or(0, |turn| turn.first)..]
}

/// One or two sentences: what was played, who is to act, what is in the hand, how the game ended.
fn status(table: &Table, inner: &Inner, state: &dyn AnyState, remark: &str) -> Markup {
    let mover = state.to_move();
    let played = last_turn(inner);
    let begins = inner.at - played.len();
    let before = inner.course.state_after(begins);
    let continues = state.is_mid_turn() && before.to_move() == mover;
    let is_new = !played.is_empty() && !continues;
    let opponent = &table.seats.opponent.name;
    html! {
        @if let Some(trouble) = &inner.trouble { p.trouble { (trouble) } }
        @if !inner.is_at_end() {
            p.quiet { "An earlier position. A move from here replaces what followed." }
        }
        p {
            @if is_new {
                (by(table, before.to_move())) " played " b { (before.write_turn(played)) } ". "
            }
            @if let Some(result) = state.result_text() {
                b { (result) }
            } @else if let Some(resigned) = inner.resigned.filter(|_| inner.is_at_end()) {
                b { (table.game().player_name(resigned)) " resigned: " (by(table, resigned.other())) " wins." }
            } @else if inner.is_at_work(Kind::Opponent) {
                (by(table, mover)) " is thinking."
            } @else if table.is_computers(state) && inner.is_at_end() {
                @if inner.is_paused { (opponent) " waits: Continue." } @else { (opponent) " is about to play." }
            } @else {
                (by(table, mover)) " to move."
            }
            @if !remark.is_empty() { " " (remark) }
        }
        @if let Some(threat) = &inner.threat { (threatened(table, threat)) }
        @if inner.hint > 0 { (hint(inner, state)) }
    }
}

/// Sentence about a threat.
fn threatened(table: &Table, threat: &Threat) -> Markup {
    html! {
        p.threat {
            "Threat: " (table.game().player_name(threat.by)) " wins in the next turn"
            @match threat.prevented_by {
                0 => { ", and no move prevents it." }
                1 => { ". One move prevents it." }
                count => { ". " (count) " of " (threat.moves) " moves prevent it." }
            }
        }
    }
}

/// Buttons that end a game, and those after its end. There is always one in a game of two players, so that nothing moves on the page.
fn ending(table: &Table, inner: &Inner) -> Markup {
    html! {
        @if !inner.is_over() {
            @if table.game().players == 2 { button type="button" data-do="resign" { "Resign" } }
        } @else {
            button.primary type="button" data-new { "New game" }
            @if table.game().players == 2 && inner.review.is_none() { button type="button" data-do="review" { "Review the game" } }
        }
    }
}

/// Name of a side, with the player behind it.
fn by(table: &Table, player: Player) -> String {
    let name = table.game().player_name(player);
    if table.game().players == 1 {
        return name.to_owned();
    }
    match table.seats.people.contains(&player) {
        true if table.seats.people.len() == 1 => format!("{name} (you)"),
        true => name.to_owned(),
        false => format!("{name} ({})", table.seats.opponent.name),
    }
}

/// Hint in three stages: where the move begins, where it goes, how it is written and what it is worth.
fn hint(inner: &Inner, state: &dyn AnyState) -> Markup {
    let best = inner
        .analysis
        .as_ref()
        .and_then(|analysis| Some((analysis, analysis.rows.first()?)));
    let Some((analysis, row)) = best.filter(|(_, row)| row.visits > 0) else {
        return html! { p.hint { "Hint: searching." } };
    };
    let turn = first_turn(state, &row.line);
    let scene = state.scene(&[]);
    let cells = clicked(state, &turn);
    let name = |cell: &usize| {
        scene
            .boards
            .first()
            .map_or_else(String::new, |board| board.name(*cell))
    };
    let value = row.value.map(|value| percent(state.game(), value.get()));
    html! {
        p.hint {
            "Hint " (inner.hint) " of 3: "
            @match (inner.hint, &cells[..]) {
                (1, [one]) => { "look at column " (column(&scene, *one)) "." }
                (1, [first, ..]) => { "begin on " b { (name(first)) } "." }
                (2, [.., last]) => { "go to " b { (name(last)) } "." }
                (1 | 2, []) => { "the best move is chosen by its name." }
                _ => {
                    b { (state.write_turn(&turn)) }
                    @if let Some(value) = value { ", " (value) }
                    " (" (analysis.by) ", " (analysis.visits) " visits)."
                }
            }
        }
    }
}

fn column(scene: &Scene, cell: usize) -> &str {
    scene.boards.first().map_or("", |board| {
        let columns = board.columns.len().max(1);
        board.columns.get(cell % columns).map_or("", String::as_str)
    })
}

/// The turns so far, each a button that shows the position after it.
fn moves(inner: &Inner) -> Markup {
    let turns = inner.course.turns();
    let ends = turns
        .iter()
        .skip(1)
        .map(|turn| turn.first)
        .chain([inner.course.actions().len()]);
    let mut state = inner.course.begin().copy();
    let mut number = 0;
    html! {
        button.turn type="button" data-go="0" aria-current=[(inner.at == 0).then_some("true")] { "Start" }
        @for (turn, end) in turns.iter().zip(ends) {
            @let actions = &inner.course.actions()[turn.first..end];
            @let text = state.write_turn(actions);
            @let () = actions.iter().for_each(|&action| state.play_legal(action));
            @if turn.player == Player::First || number == 0 {
                @let () = number += 1;
                span.number { (number) "." }
            }
            button.turn type="button" data-go=(end) aria-current=[(inner.at == end).then_some("true")] { (text) }
        }
    }
}

/// Buttons of the moves that no click on the board and no part of the tree plays, e.g. a pass. While it is the computer's turn
/// they keep their place.
pub(super) fn named(offers: &[Offer], is_persons: bool) -> Markup {
    let offers = offers.iter().enumerate();
    html! {
        @for (number, offer) in offers.filter(|(_, offer)| offer.cells.is_empty() && offer.part.is_none()) {
            button type="button" data-offer=(number) disabled[!is_persons] { (offer.text) }
        }
    }
}

/// Legal moves as buttons.
pub(super) fn legal(offers: &[Offer]) -> Markup {
    html! {
        @for (number, offer) in offers.iter().enumerate() {
            button type="button" data-offer=(number) data-part=[offer.part] { (offer.text) }
        }
    }
}

/// Tree of parts, from which one is chosen.
pub(super) fn tree(scene: &Scene) -> Markup {
    html! {
        @for (number, part) in scene.tree.iter().enumerate() {
            button type="button" data-choose=(number) class=(format!("part depth-{}", part.depth.min(8))) {
                span.number { (number) } " " (part.text)
            }
        }
    }
}

/// Share of the first player as a bar, with its source.
fn bar(table: &Table, inner: &Inner, analysis: Option<&Analysis>) -> Markup {
    let known = match analysis.filter(|analysis| inner.is_analysing && analysis.visits > 0) {
        Some(analysis) => Some((analysis.value.get(), analysis.visits, analysis.by.as_str())),
        None => inner
            .last_value
            .filter(|_| inner.is_at_end())
            .map(|(value, visits)| (value, visits, table.seats.opponent.name.as_str())),
    };
    let first = table.game().player_name(Player::First);
    html! {
        @match known {
            Some((value, visits, name)) => {
                @let share = share(table.game(), value);
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
fn percent(game: &AnyGame, value: f32) -> String {
    format!("{:.0} %", 100.0 * share(game, value))
}

/// Best actions with prior, visits, value and line.
fn rows(state: &dyn AnyState, analysis: &Analysis, exact: &[(Action, i8)]) -> Markup {
    let game = state.game();
    let all: u32 = analysis.rows.iter().map(|row| row.visits).sum();
    html! {
        p.quiet.small {
            (analysis.by) " · " (count(analysis.visits.into())) " visits · " (game.player_name(analysis.mover)) "’s chances"
        }
        table {
            thead { tr {
                th scope="col" { "Move" }
                th scope="col" { "Prior" }
                th scope="col" { "Visits" }
                th scope="col" { "Value" }
                @if game.has_solver { th scope="col" { "Exact" } }
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
                        td { @match row.value { Some(value) => { (percent(game, value.get())) } None => { "–" } } }
                        @if game.has_solver { td { (verdict(exact, row.action)) } }
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
fn overlay(inner: &Inner, state: &dyn AnyState, scene: &Scene, view: View) -> Markup {
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
    let shown = |analysis: &Analysis| -> Vec<Figures> {
        let all: u32 = analysis.rows.iter().map(|row| row.visits).sum();
        let figures = analysis.rows.iter().map(|row| Figures {
            action: row.action,
            prior: row.prior,
            visits: row.visits as f32 / all.max(1) as f32,
            value: row.value.map(|value| share(state.game(), value.get())),
        });
        figures.collect()
    };
    html! {
        @if let Some(cell) = inner.threat.as_ref().and_then(|threat| threat.cell) {
            @let (x, y) = geometry.centre(cell);
            path.threat d=(format!("M{} {}l36 62h-72z", x, y - 40)) {}
        }
        @for cell in hinted {
            @let (x, y) = geometry.centre(cell);
            circle.hinted cx=(x) cy=(y) r="44" {}
        }
        @if let Some(analysis) = inner.analysis.as_ref().filter(|_| inner.is_analysing) {
            (board::overlay(|action| state.clicks(action), board, view, &shown(analysis)))
        }
    }
}

/// Cells that are clicked to play actions one after the other.
fn clicked(state: &dyn AnyState, actions: &[Action]) -> Vec<usize> {
    let mut state = state.copy();
    let mut cells = Vec::new();
    for &action in actions {
        let clicks = state.clicks(action);
        cells.extend(clicks.cells.iter().filter_map(|click| click.first().copied()));
        state.play_legal(action);
    }
    cells
}

/// Actions of a line that belong to its first turn.
pub(super) fn first_turn(state: &dyn AnyState, line: &[Action]) -> Vec<Action> {
    turns_of(state, line).into_iter().next().unwrap_or_default()
}

/// Turns of a line.
fn turns_of(state: &dyn AnyState, line: &[Action]) -> Vec<Vec<Action>> {
    let mut state = state.copy();
    let mut turns: Vec<Vec<Action>> = Vec::new();
    for &action in line {
        match turns.last_mut().filter(|_| state.is_mid_turn()) {
            Some(turn) => turn.push(action),
            None => turns.push(vec![action]),
        }
        state.play_legal(action);
    }
    turns
}

/// A line as people write it, turn by turn.
fn line_text(state: &dyn AnyState, line: &[Action]) -> String {
    let mut state = state.copy();
    let turns = turns_of(&*state, line);
    let mut texts = Vec::new();
    for turn in turns {
        texts.push(state.write_turn(&turn));
        for action in turn {
            state.play_legal(action);
        }
    }
    texts.join(" · ")
}
