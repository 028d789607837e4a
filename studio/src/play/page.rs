//! The page around a table: who plays, the board, the moves, the analysis.

use arena::Spec;
use axum::extract::State;
use games::{erased::AnyGame, registry};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    offers::offers,
    opponents::{opponents, searches, words},
    start, view,
};
use crate::{
    app::App,
    assets,
    board::{self, View},
    failure::Failure,
    form::Parameters,
    live::Slots,
    page::{Section, page},
};

/// Game that is offered where no run says another one.
const USUAL_GAME: &str = "paco-sako";

/// Parameters of the page's address.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    /// A table that is open.
    table: Option<String>,
    /// Title of the game, e.g. `go:9`.
    game: Option<String>,
    opponent: Option<String>,
    visits: Option<u32>,
    side: Option<String>,
    level: Option<u32>,
    start: Option<String>,
    /// Actions that were played before, as JSON.
    actions: Option<String>,
}

pub(super) async fn show(
    State(app): State<App>,
    Parameters(asked): Parameters<Asked>,
) -> Result<Markup, Failure> {
    let tables = &app.tables;
    let table = match &asked.table {
        Some(id) => tables.table(id).ok(),
        None => None,
    };
    let game = match (&table, &asked.game, &tables.run) {
        (Some(table), ..) => table.game(),
        (None, Some(game), _) => registry::find(game)?,
        (None, None, Some(run)) => run.game()?,
        (None, None, None) => registry::find(USUAL_GAME)?,
    };
    let known = opponents(tables, game).await;
    let id = asked.table.as_deref().filter(|_| table.is_some());
    let view = View {
        flipped: asked.side.as_deref() == Some("second"),
        interactive: false,
    };
    let pieces = match &table {
        Some(table) => table.shown(view).html,
        None => first_pieces(game, asked.start.as_deref(), view),
    };
    let body = html! {
        link rel="stylesheet" href=(assets::path("board.css"));
        link rel="stylesheet" href=(assets::path("play.css"));
        (board::pieces())
        h1.hidden-text { "Play " (game.title()) }
        (setup(game, &known, &asked, tables.limits.visits))
        div.play data-play data-table=[id] data-players=(game.players) {
            (table_parts(game, id, &pieces))
        }
        noscript { p { "To play needs JavaScript. All other pages can be read without it." } }
    };
    Ok(page(
        &app,
        Section::Play,
        &format!("Play {}", game.title()),
        &["play.js"],
        &body,
    ))
}

/// Choice of the game, the opponent and the start.
fn setup(game: &AnyGame, known: &[Spec], asked: &Asked, most_visits: u32) -> Markup {
    let is = |asked: &Option<String>, value: &str| asked.as_deref() == Some(value);
    let [first, second] = game.player_names;
    html! {
        form.setup data-setup {
            label { span { "Game" }
                select name="game" {
                    @for &name in registry::NAMES {
                        option value=(name) selected[name == game.name] { (name) }
                    }
                }
            }
            @if let Some(sizes) = game.sizes {
                label { span { "Board" }
                    select name="size" {
                        @for size in sizes.least..=sizes.most {
                            option value=(size) selected[game.size() == Some(size)] { (size) "×" (size) }
                        }
                    }
                }
            }
            @if game.players == 2 {
                label { span { "You" }
                    select name="side" {
                        @for (value, name) in [("first", first), ("second", second), ("both", "both sides"), ("none", "watch")] {
                            option value=(value) selected[is(&asked.side, value)] { (name) }
                        }
                    }
                }
            }
            label.wide { span { @if game.players == 2 { "Opponent" } @else { "Helper" } }
                select name="opponent" {
                    @for opponent in known {
                        option value=(opponent.written) selected[is(&asked.opponent, &opponent.written)] data-searches[searches(opponent)] { (opponent.name) (words(opponent)) }
                    }
                }
            }
            label { span { "Visits" }
                input name="visits" type="number" min="1" max=(most_visits) value=(asked.visits.unwrap_or(100)) required;
            }
            @if game.levels > 0 {
                label { span { "Level" }
                    input name="level" type="number" min="1" max=(game.levels) value=(asked.level.unwrap_or(3)) required;
                }
            }
            details.position {
                summary { "Position" }
                label { span { "Begin with" }
                    input.mono name="start" value=[asked.start.as_deref()] placeholder="usual start" autocomplete="off" spellcheck="false";
                }
            }
            input type="hidden" name="actions" value=[asked.actions.as_deref()];
            button.primary type="submit" { "New game" }
        }
    }
}

/// The pieces of a game that has not begun. Where problems are drawn, the board's place alone is shown. Nothing if the start is not valid.
fn first_pieces(game: &AnyGame, text: Option<&str>, view: View) -> Slots {
    let given = text.filter(|text| !text.trim().is_empty());
    let Ok(state) = start(game, given, 1, 0) else {
        return Slots::default();
    };
    let scene = state.scene(&[]);
    let is_drawn = given.is_none() && game.levels > 0;
    let board = html! { div .unseen[is_drawn] { (board::boards(&scene, view)) } };
    let offers = offers(&*state);
    Slots::default()
        .with("board", board)
        .with("tree", view::tree(&scene))
        .with("named", view::named(&offers, false))
        .with("legal", view::legal(&offers))
}

/// Rules for people who have never seen the game.
fn lessons(game: &AnyGame) -> Markup {
    html! {
        @if !game.lessons.is_empty() {
            details.lessons {
                summary { "The rules in half a page" }
                @for lesson in game.lessons {
                    p { (lesson.text) }
                    @for &(caption, position) in lesson.positions {
                        @if let Ok(state) = start(game, Some(position), 1, 0) {
                            figure { (board::illustration(&state.scene(&[]))) figcaption { (caption) } }
                        }
                    }
                }
            }
        }
    }
}

/// Places that the server fills, with what is known of them, and the buttons between them.
fn table_parts(game: &AnyGame, id: Option<&str>, pieces: &Slots) -> Markup {
    let piece = |name: &str| pieces.content(name);
    html! {
        section.stage aria-label="Board" {
            div.bar-slot data-slot="bar" { (piece("bar")) }
            div.board-slot data-slot="board" { (piece("board")) }
            div.picker role="dialog" aria-label="Choose a piece" hidden {}
        }
        section.side aria-label="Game" {
            div.status.card role="status" aria-live="polite" data-slot="status" { (piece("status")) }
            p.said role="alert" {}
            div.commands data-slot="ending" { (piece("ending")) }
            div.commands {
                span.named data-slot="named" { (piece("named")) }
                button type="button" data-do="back" { "Step back" }
                button type="button" data-do="undo" { "Undo turn" }
                button type="button" data-do="hint" { "Hint" }
                @if game.players == 2 { button type="button" data-flip { "Turn board" } }
                button type="button" data-pause hidden { "Continue" }
            }
            form.say {
                label { span.hidden-text { "Your move" }
                    input.mono name="text" placeholder="Type a move" autocomplete="off" autocapitalize="off" spellcheck="false" title=(game.help);
                }
                button type="submit" { "Play" }
            }
            (lessons(game))
            details.legal open[game.levels > 0] {
                summary { "Legal moves" }
                div.parts data-slot="tree" { (piece("tree")) }
                div.choices data-slot="legal" { (piece("legal")) }
            }
            section.card.review data-slot="review" aria-label="Review" { (piece("review")) }
            section.card.moves aria-labelledby="moves" {
                h2 #moves { "Moves" }
                div.turns data-slot="moves" { (piece("moves")) }
                details.small { summary { "Position as text" } div data-slot="position" {} }
            }
            section.card.analysis aria-labelledby="analysis" {
                div.head {
                    h2 #analysis { "Analysis" }
                    label.switch { input type="checkbox" role="switch" name="analyse"; span { "on" } }
                    fieldset.show {
                        legend.hidden-text { "Figure on the board" }
                        @for (value, name) in [("visits", "visits"), ("prior", "prior"), ("value", "value")] {
                            label { input type="radio" name="show" value=(value) checked[value == "visits"]; (name) }
                        }
                    }
                }
                div.rows data-slot="analysis" { (piece("analysis")) }
                form.open-tree method="post" action="/search" {
                    input type="hidden" name="table" value=[id];
                    button type="submit" { "Open the search tree" }
                }
            }
        }
    }
}
