//! The overview: the state of the run on one page, kept current while somebody looks.
//!
//! | module | contents |
//! |---|---|
//! | [`state`] | all that is shown, read from the run's files and services |
//! | [`watch`] | looks for alarms while somebody watches |
//! | [`alarms`] | what is wrong, and what to do |
//! | [`newest`] | the newest game |
//! | [`flow`] | the diagram of the run: roles, and what flows between them |
//! | [`parts`] | the other parts: status, losses, strength, problems, machine, events |

mod alarms;
mod flow;
mod newest;
pub mod parts;
pub mod state;
pub mod watch;

use axum::{Router, extract::State, response::IntoResponse, routing::get};
use maud::{Markup, html};

use crate::{
    app::App,
    board,
    failure::Failure,
    live::{self, Slots},
    page::{Section, page},
};

/// Routes of the overview.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/", get(overview))
        .route("/live", get(stream))
}

async fn overview(State(app): State<App>) -> Markup {
    let slots = slots(&app).await;
    let body = html! {
        (board::pieces())
        h1.hidden-text { "Overview of " (app.run.name) ", a run of " (app.run.config.game.title()) }
        div.overview data-live="/live" {
            section.top aria-label="State of the run" { (slots.show("status")) }
            (alarms::card(&slots))
            section.card.flow-card aria-label="Flow of the run" { (slots.show("flow")) }
            div.cards.wide {
                @if parts::has_problems(&app.run) {
                    section.card aria-labelledby="problems" { h2 #problems { "Problems" } (slots.show("problems")) }
                }
                section.card aria-labelledby="strength" { h2 #strength { "Strength" } (slots.show("strength")) }
                section.card aria-labelledby="policy-loss" { h2 #policy-loss { "Policy loss" } (slots.show("policy-loss")) }
                section.card aria-labelledby="value-loss" { h2 #value-loss { "Value loss" } (slots.show("value-loss")) }
                section.card.newest aria-labelledby="newest" { h2 #newest { "Newest game" } (slots.show("newest")) }
                section.card aria-labelledby="machine" { h2 #machine { @if app.run.is_elsewhere { "Processes" } @else { "This machine" } } (slots.show("machine")) }
                section.card aria-labelledby="events" { h2 #events { "Events" } (slots.show("events")) }
            }
            p.quiet.small {
                a href="/report" { "Save a report" } ": the run as one file, with charts and three games, to keep or to send."
            }
        }
    };
    page(
        &app,
        Section::Overview,
        "Overview",
        &["live.js", "copy.js"],
        &body,
    )
}

async fn stream(State(app): State<App>) -> Result<impl IntoResponse, Failure> {
    let shown = app.clone();
    live::stream(&app, move || {
        let app = shown.clone();
        async move { slots(&app).await }
    })
}

/// All parts of the page that change.
async fn slots(app: &App) -> Slots {
    let watched = &app.watched;
    let checkpoint = watched.look(alarms::newest_checkpoint);
    let (newest, findings) = tokio::join!(
        watched.newest(&app.store),
        watched.alarms.findings(&app.run, checkpoint)
    );
    let slots = watched.look(|state| {
        Slots::default()
            .with("status", parts::status(state))
            .with("flow", flow::flow(state))
            .with("strength", parts::strength(state))
            .with(
                "policy-loss",
                parts::losses("Policy loss", &state.learning.policy),
            )
            .with("value-loss", parts::losses("Value loss", &state.learning.value))
            .with("problems", parts::problems(state))
            .with("machine", parts::machine(state))
            .with("events", parts::events(state))
    });
    alarms::with_alarms(slots, findings.as_ref()).with("newest", parts::newest(newest.as_deref()))
}
