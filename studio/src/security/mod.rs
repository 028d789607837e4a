//! Checks that every request must pass before it is routed, and the headers of every reply.
//!
//! | module | contents |
//! |---|---|
//! | [`door`] | the address that is served, and what it demands: TLS, tokens, names of the host |
//! | [`hosts`] | names by which the studio may be asked |
//! | [`gate`] | beyond this machine: the rights of a request, by a cookie |
//! | [`login`] | the page that takes a token |
//! | [`attempts`] | wrong tokens, limited and logged |
//! | [`wire`] | a connection, with limits of time and of bytes |
//! | [`token`] | a token that the studio makes for itself |
//!
//! A page of a stranger in the same browser is the danger. Three rules hold: a request must name this machine as its host, because a
//! stranger's name may be made to point here (DNS rebinding), and such requests carry no `Origin`; a request that changes something must
//! not come from another site; a reply may be used by this site only.

pub mod attempts;
pub mod door;
pub mod gate;
pub mod hosts;
pub mod login;
pub mod token;
pub mod wire;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tower::{Layer as _, util::BoxCloneSyncService};
use tower_http::csrf::CsrfLayer;

use self::hosts::Hosts;

/// Headers of every reply.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=()",
    ),
];

/// The routes behind all checks.
pub type Guarded = BoxCloneSyncService<Request, Response, std::convert::Infallible>;

/// Puts the checks before the routes, which are asked by the names of `hosts`.
pub fn guard(routes: Router, hosts: Hosts) -> Guarded {
    let same_site = CsrfLayer::new().layer(middleware::from_fn(wire::whole_body).layer(routes));
    let known_host = middleware::from_fn_with_state(hosts, check_host).layer(same_site);
    BoxCloneSyncService::new(tower::util::MapResponse::new(known_host, with_headers))
}

/// Adds the headers that every reply has. A reply that says how long it may be kept keeps that.
fn with_headers(reply: impl IntoResponse) -> Response {
    let mut reply = reply.into_response();
    let headers = reply.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    reply
}

async fn check_host(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    if hosts.allow(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::MISDIRECTED_REQUEST, hosts.refusal()).into_response()
}
