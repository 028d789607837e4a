//! Checks that every request must pass before it is routed, and the headers of every reply.
//!
//! A page of a stranger in the same browser is the danger. Three rules hold: a request must name this machine as its host, because a
//! stranger's name may be made to point here (DNS rebinding), and such requests carry no `Origin`; a request that changes something must
//! not come from another site; a reply may be used by this site only.

use axum::{
    Router,
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
};
use tower::{Layer as _, util::BoxCloneSyncService};
use tower_http::csrf::CsrfLayer;

/// Names under which this machine is asked.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

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

/// Puts the checks before the routes.
pub fn guard(routes: Router) -> Guarded {
    let same_site = CsrfLayer::new().layer(routes);
    let known_host = middleware::from_fn(check_host).layer(same_site);
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

async fn check_host(request: Request, next: Next) -> Response {
    if is_known(request.uri(), request.headers()) {
        return next.run(request).await;
    }
    let text = "This address is refused: ask for http://127.0.0.1 or http://localhost, with the port.\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

/// True if the request has one `Host`, which names this machine with any port. Ports do not matter: a forwarded port has another
/// number, and a stranger's page cannot choose the name.
fn is_known(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let named = |authority: &str| {
        let name = match authority.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => authority,
        };
        HOSTS.iter().any(|known| known.eq_ignore_ascii_case(name))
    };
    host.to_str().is_ok_and(named) && uri.authority().is_none_or(|authority| named(authority.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_known() {
        let known = |host: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())]);
            is_known(&Uri::from_static("/"), &headers)
        };
        for host in [
            "localhost",
            "LOCALHOST:7070",
            "127.0.0.1:1",
            "[::1]:7070",
            "[::1]",
        ] {
            assert!(known(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:7070",
            "evil.example:127.0.0.1",
            "localhost:",
            "localhost@evil.example",
            "0.0.0.0:7070",
            "127.0.0.1:7070:1",
        ] {
            assert!(!known(host), "{host}");
        }
        assert!(!is_known(&Uri::from_static("/"), &HeaderMap::new()));
        let mut two = HeaderMap::new();
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        two.append(header::HOST, HeaderValue::from_static("localhost"));
        assert!(!is_known(&Uri::from_static("/"), &two));
        let one = HeaderMap::from_iter([(header::HOST, HeaderValue::from_static("localhost"))]);
        assert!(!is_known(&Uri::from_static("http://evil.example/"), &one));
    }
}
