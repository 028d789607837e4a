//! Play without scripts: the same table with plain forms, one button for each legal move.
//!
//! A form is answered when the computer has played, or after [`PATIENCE`]; the page then says that it is thinking.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
};
use games::Action;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::{
    NewGame,
    command::{AnyTable, Command},
    offers::Offer,
    open_table,
    page::{self, Asked},
    refusal::Refusal,
    tables::Facts,
};
use crate::{app::App, board::View, failure::Failure, form::Fields};

/// Longest time for which a reply waits for the computer's move.
const PATIENCE: Duration = Duration::from_secs(10);
/// Side whose player sees the board turned.
pub(super) const SECOND: &str = "second";

/// A game to begin, as the fields of a form. Empty fields are missing ones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begun {
    game: String,
    #[serde(default)]
    opponent: String,
    #[serde(default)]
    visits: Option<u32>,
    #[serde(default)]
    side: String,
    #[serde(default)]
    level: Option<u32>,
    #[serde(default)]
    start: String,
    /// Actions that were played before, as JSON.
    #[serde(default)]
    actions: String,
}

/// Something that a person does at a table, as the fields of a form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Act {
    /// Number of actions before the position that the page shows.
    at: usize,
    /// Side of the person.
    #[serde(default)]
    side: String,
    /// Actions to play, separated by spaces.
    play: Option<String>,
    /// A turn as people write it.
    say: Option<String>,
    /// Part to take back: `back` (an action) or `undo` (a turn).
    take: Option<String>,
}

/// `POST /play/new`: begins a game.
pub(super) async fn begin(State(app): State<App>, Fields(begun): Fields<Begun>) -> Result<Redirect, Failure> {
    let some = |text: String| Some(text).filter(|text| !text.trim().is_empty());
    let actions: Vec<Action> = match some(begun.actions) {
        Some(actions) => serde_json::from_str(&actions)
            .map_err(|error| Failure::BadRequest(format!("The field `actions`: {error}.")))?,
        None => Vec::new(),
    };
    let side = some(begun.side).unwrap_or_else(super::usual_side);
    let new = NewGame {
        game: begun.game,
        opponent: some(begun.opponent),
        visits: begun.visits.unwrap_or_else(super::usual_visits),
        side: side.clone(),
        start: some(begun.start),
        level: begun.level.unwrap_or_else(super::usual_level),
        actions,
        seed: None,
    };
    let id = open_table(app.tables(), new).await?;
    answered(&app.tables().table(&id)?, app.tables().limits.plain).await;
    Ok(Redirect::to(&address(&id, &side)))
}

/// `POST /play/tables/{id}/act`: does something at a table. What the table refuses is said on its page.
pub(super) async fn act(
    State(app): State<App>,
    Path(id): Path<String>,
    Fields(act): Fields<Act>,
) -> Result<Response, Failure> {
    let table = app.tables().table(&id)?;
    let side = act.side.clone();
    let done = command(act).and_then(|command| Arc::clone(&table).execute(command));
    if let Err(refusal) = done {
        let asked = Asked::table(&id, &side);
        let shown = page::page_of(&app, &asked, Some(&refusal.to_string())).await?;
        return Ok((Failure::from(refusal).status(), shown).into_response());
    }
    answered(&table, app.tables().limits.plain).await;
    Ok(Redirect::to(&address(&id, &side)).into_response())
}

fn address(id: &str, side: &str) -> String {
    match side {
        SECOND => format!("/play?table={id}&side={SECOND}"),
        _ => format!("/play?table={id}"),
    }
}

fn command(act: Act) -> Result<Command, Refusal> {
    match (act.play, act.say, act.take.as_deref()) {
        (Some(actions), None, None) => {
            let actions: Result<Vec<Action>, _> = actions.split_whitespace().map(str::parse).collect();
            let actions = actions.map_err(|_| Refusal::Request("A move is a list of numbers.".into()))?;
            Ok(Command::Play { actions, at: act.at })
        }
        (None, Some(text), None) => Ok(Command::Say { text }),
        (None, None, Some("back")) => Ok(Command::Back),
        (None, None, Some("undo")) => Ok(Command::Undo),
        _ => Err(Refusal::Request(
            "A form has one of the fields `play`, `say` and `take`.".into(),
        )),
    }
}

/// Waits until the computer has played. If that takes longer than [`PATIENCE`], the table counts as watched for the time `watched` more,
/// so that the move comes.
async fn answered(table: &Arc<dyn AnyTable>, watched: Duration) {
    let watching = Arc::clone(table).watch();
    let mut changes = table.changes();
    let answer = async { while table.is_thinking() && changes.changed().await.is_ok() {} };
    if tokio::time::timeout(PATIENCE, answer).await.is_err() {
        tokio::spawn(async move {
            tokio::time::sleep(watched).await;
            drop(watching);
        });
    }
}

/// The table for browsers without scripts.
pub(super) fn table(facts: &Facts, id: &str, table: &dyn AnyTable, side: &str, said: Option<&str>) -> Markup {
    let slots = table.slots(View {
        flipped: side == SECOND,
        interactive: false,
    });
    let part = |name: &str| {
        let found = slots.html.iter().find(|(known, _)| *known == name);
        PreEscaped(found.map_or("", |(_, html)| html.as_str()))
    };
    let hidden = html! {
        input type="hidden" name="at" value=(slots.at);
        input type="hidden" name="side" value=(side);
    };
    let action = format!("/play/tables/{id}/act");
    html! {
        div.plain {
            section.boards-alone aria-label="Board" { (part("board")) }
            section.side aria-label="Game" {
                div.status.card { (part("status")) }
                @if let Some(said) = said { p.said role="alert" { (said) } }
                @if table.is_thinking() { p { a href=(address(id, side)) { "Look again" } } }
                @if facts.levels > 0 { div.parts inert { (part("tree")) } }
                @if !slots.offers.is_empty() {
                    form method="post" action=(action) {
                        (hidden)
                        fieldset.choices { legend { "Legal moves" } @for offer in &slots.offers { (choice(offer)) } }
                    }
                    form.say method="post" action=(action) {
                        (hidden)
                        label { span.hidden-text { "Your move" }
                            input.mono name="say" placeholder="Type a move" autocomplete="off" spellcheck="false" title=(facts.help) required;
                        }
                        button type="submit" { "Play" }
                    }
                }
                form.commands method="post" action=(action) {
                    (hidden)
                    button type="submit" name="take" value="back" { "Step back" }
                    button type="submit" name="take" value="undo" { "Undo turn" }
                }
            }
        }
    }
}

fn choice(offer: &Offer) -> Markup {
    let actions: Vec<String> = offer.actions.iter().map(Action::to_string).collect();
    html! { button type="submit" name="play" value=(actions.join(" ")) { (offer.text) } " " }
}
