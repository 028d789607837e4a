//! All routes of the studio.

use axum::{Router, response::Redirect, routing::get};

use crate::{app::App, assets, failure::Failure, learn, matches, overview, play, records, report};

/// All routes.
pub fn routes(app: App) -> Router {
    let of_run = match app.has_run() {
        true => Router::new()
            .merge(overview::routes())
            .merge(records::routes())
            .merge(learn::routes())
            .merge(matches::routes())
            .merge(report::routes()),
        false => Router::new().route("/", get(async || Redirect::to("/play"))),
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/assets/{digest}/{name}", get(assets::asset))
        .merge(of_run)
        .merge(play::routes())
        .fallback(async || Failure::NoSuchPage)
        .with_state(app)
}
