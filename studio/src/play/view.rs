//! The view of a table: pieces of HTML with the names of their places.

use games::{Action, Notation, Player, scene::Scene};
use maud::{Markup, html};

use super::{
    command::Slots,
    figures::{bar, overlay, percent, rows},
    offers::{Offer, offers},
    table::{Inner, Table},
    turns::{clicked, first_turn},
};
use crate::board::{self, View};

/// Draws all pieces.
pub(super) fn slots<G: Notation>(table: &Table<G>, inner: &Inner<G>, view: View) -> Slots {
    let state = inner.shown();
    let last_turn = last_turn(inner);
    let scene = state.scene(last_turn);
    let is_persons = !table.is_computers(&state) && state.outcome().is_none();
    let offers = if is_persons { offers(&state) } else { Vec::new() };
    let analysis = inner.analysis.as_ref();
    let html = vec![
        ("board", board::boards(&scene, view).into_string()),
        ("overlay", overlay(inner, &state, &scene, view).into_string()),
        ("status", status(table, inner, &state).into_string()),
        ("moves", moves(inner).into_string()),
        ("legal", legal(&offers).into_string()),
        ("tree", tree(&scene).into_string()),
        ("bar", bar::<G>(table, inner, analysis).into_string()),
        (
            "analysis",
            match analysis.filter(|_| inner.is_analysing) {
                Some(analysis) => rows(&state, analysis, &inner.exact).into_string(),
                None => String::new(),
            },
        ),
        ("position", html! { code { (state.position()) } }.into_string()),
    ];
    Slots {
        html,
        offers,
        at: inner.at,
        analysing: inner.is_analysing,
        paused: inner.is_paused,
    }
}

/// Actions of the last turn before the position that is shown. A turn that is not complete counts with the one before it.
fn last_turn<G: Notation>(inner: &Inner<G>) -> &[Action] {
    let actions = &inner.course.actions()[..inner.at];
    let first = inner.course.turns().iter().rfind(|turn| turn.first < inner.at);
    &actions[first.map_or(0, |turn| turn.first)..]
}

/// One or two sentences: what was played, who is to act, what is in the hand, how the game ended.
fn status<G: Notation>(table: &Table<G>, inner: &Inner<G>, state: &G) -> Markup {
    let mover = state.to_move();
    let remark = state.remark();
    let played = last_turn(inner);
    let begins = inner.at - played.len();
    let before = inner.course.state_after(begins);
    let goes_on = state.is_mid_turn() && before.to_move() == mover;
    let is_new = !played.is_empty() && !goes_on;
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
            } @else if inner.opponent_job.is_some() {
                (by(table, mover)) " is thinking."
            } @else if table.is_computers(state) && inner.is_at_end() {
                @if inner.is_paused { (opponent) " waits: Go on." } @else { (opponent) " is about to play." }
            } @else {
                (by(table, mover)) " to move."
            }
            @if !remark.is_empty() { " " (remark) }
        }
        @if inner.hint > 0 { (hint(inner, state)) }
    }
}

/// Name of a side, with the player behind it.
fn by<G: Notation>(table: &Table<G>, player: Player) -> String {
    let name = G::player_name(player);
    if G::PLAYERS == 1 {
        return name.to_owned();
    }
    match table.seats.people.contains(&player) {
        true if table.seats.people.len() == 1 => format!("{name} (you)"),
        true => name.to_owned(),
        false => format!("{name} ({})", table.seats.opponent.name),
    }
}

/// Hint in three stages: where the move begins, where it goes, how it is written and what it is worth.
fn hint<G: Notation>(inner: &Inner<G>, state: &G) -> Markup {
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
    let value = row.value.map(|value| percent::<G>(value.get()));
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

fn column(scene: &Scene, cell: usize) -> &'static str {
    scene.boards.first().map_or("", |board| {
        let columns = board.columns.len().max(1);
        board.columns.get(cell % columns).copied().unwrap_or_default()
    })
}

/// The turns so far, each a button that shows the position after it.
fn moves<G: Notation>(inner: &Inner<G>) -> Markup {
    let turns = inner.course.turns();
    let ends = turns
        .iter()
        .skip(1)
        .map(|turn| turn.first)
        .chain([inner.course.actions().len()]);
    let mut state = inner.course.begin().clone();
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
