//! The search explorer: the tree of a search, opened node by node, with the numbers by which each visit is chosen.
//!
//! A table of [`play`](crate::play) opens an explorer of the position that it shows. Its page needs no script: nodes are links, and
//! visits are a form.
//!
//! | module | contents |
//! |---|---|
//! | [`explorer`] | the search, and the list of open explorers |
//! | `view`, `tree` | its drawing: the chosen node; the opened tree |

pub mod explorer;
mod tree;
mod view;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Context as _;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use games::Action;
use maud::{Markup, html};
use serde::Deserialize;
use tokio::sync::Semaphore;

use self::explorer::Explorer;
use crate::{
    app::App,
    assets, board,
    failure::Failure,
    form::{Fields, Parameters},
    page::{Section, page},
};

/// Visits with which an explorer begins.
const FIRST_VISITS: u32 = 50;

/// Routes of the explorer.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/search", post(open))
        .route("/search/{id}", get(show))
        .route("/search/{id}/visit", post(visit))
        .route("/search/{id}/tree.json", get(save))
}

/// A table whose position is to be explored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Opened {
    table: String,
}

/// Visits to make, and the chosen node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Visits {
    count: u32,
    #[serde(default)]
    at: String,
}

/// A chosen node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct At {
    /// Actions from the position on, separated by full stops.
    at: String,
    /// True to list all its moves.
    all: bool,
}

async fn open(State(app): State<App>, Fields(opened): Fields<Opened>) -> Result<Redirect, Failure> {
    let table = app.tables.table(&opened.table)?;
    let explorer = tokio::task::spawn_blocking(move || table.explorer());
    let explorer = explorer.await.context("opening the search failed")??;
    let id = app.explorers.add(Arc::clone(&explorer));
    search(&app.tables.searches, explorer, FIRST_VISITS).await?;
    Ok(Redirect::to(&format!("/search/{id}")))
}

async fn visit(
    State(app): State<App>,
    Path(id): Path<String>,
    Fields(visits): Fields<Visits>,
) -> Result<Redirect, Failure> {
    let most = app.tables.limits.visits;
    if !(1..=most).contains(&visits.count) {
        return Err(Failure::BadRequest(format!(
            "The number of visits is from 1 to {most}."
        )));
    }
    let path = parsed(&visits.at)?;
    search(&app.tables.searches, find(&app, &id)?, visits.count).await?;
    Ok(Redirect::to(&format!("/search/{id}?at={}", view::written(&path))))
}

/// Makes visits, with a permit of `searches`. They end early if the future is dropped, as it is when a browser closes its connection.
///
/// # Errors
/// [`Failure`] if the network cannot be asked. Earlier visits are kept.
pub async fn search(searches: &Arc<Semaphore>, explorer: Arc<Explorer>, count: u32) -> Result<(), Failure> {
    let permit = Arc::clone(searches).acquire_owned().await;
    let permit = permit.context("the studio is closing")?;
    let waiting = Waiting::default();
    let stop = Arc::clone(&waiting.0);
    let searched = tokio::task::spawn_blocking(move || {
        let _held_while_at_work = permit;
        explorer.visit(count, &stop)
    });
    let searched = searched.await.context("the search failed")?;
    searched.map_err(|error| Failure::Unavailable(format!("The search cannot continue: {error:#}.")))
}

/// Stops a search when it is dropped.
#[derive(Default)]
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn show(
    State(app): State<App>,
    Path(id): Path<String>,
    Parameters(at): Parameters<At>,
) -> Result<Markup, Failure> {
    let path = parsed(&at.at)?;
    let explorer = find(&app, &id)?;
    let base = format!("/search/{id}");
    let drawn = explorer.page(&base, &path, at.all);
    let drawn = drawn.ok_or_else(|| Failure::Missing("The search has not been at this node.".into()))?;
    let body = html! {
        link rel="stylesheet" href=(assets::path("explore.css"));
        (board::pieces())
        h1 { "Search tree of " (explorer.game().title()) }
        (drawn)
        p.quiet.small { a href=(format!("{base}/tree.json")) { "Save the tree as JSON" } ": every node with visits, and its numbers." }
    };
    Ok(page(&app, Section::Play, "Search tree", &["explore.js"], &body))
}

async fn save(State(app): State<App>, Path(id): Path<String>) -> Result<Response, Failure> {
    let explorer = find(&app, &id)?;
    let name = format!(
        "attachment; filename=\"minuet-tree-{}.json\"",
        explorer.game().name
    );
    let tree = tokio::task::spawn_blocking(move || explorer.tree());
    let tree = tree.await.context("writing the tree failed")?;
    Ok(([(header::CONTENT_DISPOSITION, name)], Json(tree)).into_response())
}

fn find(app: &App, id: &str) -> Result<Arc<Explorer>, Failure> {
    let gone = "This search is closed, because others were opened since. Open it again from its game.";
    app.explorers
        .find(id)
        .ok_or_else(|| Failure::Missing(gone.into()))
}

fn parsed(at: &str) -> Result<Vec<Action>, Failure> {
    let actions = at.split('.').filter(|action| !action.is_empty());
    let parsed: Result<Vec<Action>, _> = actions.map(str::parse).collect();
    parsed.map_err(|_| Failure::BadRequest("A node is named by its actions, e.g. at=12.64.".into()))
}
