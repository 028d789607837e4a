//! All routes of the studio.

use axum::{Router, middleware::from_fn_with_state, response::Redirect, routing::get};
use service::security::tokens::Right;

use crate::{
    app::App,
    assets, compare, explore,
    failure::Failure,
    learn, matches, overview, play, records, report,
    security::{
        gate::{Gate, admit},
        login,
    },
    settings,
};

/// All routes. With a `gate` a token is needed: one that may `sample` for pages, one that may `evaluate` to play.
pub fn routes(app: App, gate: Option<&Gate>) -> Router {
    let needs = |right: Right, routes: Router<App>| match gate {
        None => routes,
        Some(gate) => routes.route_layer(from_fn_with_state((gate.clone(), right), admit)),
    };
    let of_run = match app.has_run() {
        true => Router::new()
            .merge(overview::routes())
            .merge(records::routes())
            .merge(learn::routes())
            .merge(matches::routes())
            .merge(compare::routes())
            .merge(settings::routes())
            .merge(report::routes()),
        false => Router::new().route("/", get(async || Redirect::to("/play"))),
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/assets/{digest}/{name}", get(assets::asset))
        .merge(needs(Right::Sample, of_run))
        .merge(needs(Right::Evaluate, play::routes().merge(explore::routes())))
        .fallback(async || Failure::NoSuchPage)
        .with_state(app)
        .merge(gate.map_or_else(Router::new, |gate| login::routes(gate.clone())))
}
