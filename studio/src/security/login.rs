//! The page that takes a token, and the answer to requests without one.
//!
//! A page that is refused is answered with the form itself. The form is a plain one, which needs no script: the token is posted in the
//! body, and the reply leads back to the requested page.

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header, uri::PathAndQuery},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use maud::{Markup, html};
use serde::Deserialize;
use service::listener::Peer;
use tonic::{Code, Status};

use super::gate::Gate;
use crate::{
    figures::words::{capital, with_code},
    form::Fields,
    page::document,
};

/// Address that is shown after signing in if no page was requested.
const HOME: &str = "/";

/// Fields of the form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
    /// Address of the requested page.
    to: String,
}

/// Routes of the form, and of the end of a session.
pub fn routes(gate: Gate) -> Router {
    let form = async || page("Sign in with a token of this run.", HOME);
    Router::new()
        .route("/login", get(form).post(sign_in))
        .route("/logout", post(sign_out))
        .with_state(gate)
}

async fn sign_in(
    State(gate): State<Gate>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Fields(Login { token, to }): Fields<Login>,
) -> Response {
    let from = peer.address().map(|address| address.ip());
    match gate.sign_in(&headers, token.trim(), from) {
        Ok(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to(of_this_site(&to))).into_response(),
        Err(status) => refused(&status, &to),
    }
}

async fn sign_out(State(gate): State<Gate>, headers: HeaderMap) -> Response {
    let cookie = gate.sign_out(&headers);
    ([(header::SET_COOKIE, cookie)], Redirect::to("/login")).into_response()
}

/// Address of the page of a request. A request that changes something has none.
pub(super) fn wanted(request: &Request) -> String {
    match (request.method(), request.uri().path_and_query()) {
        (&Method::GET, Some(address)) => address.to_string(),
        _ => HOME.into(),
    }
}

/// The address `to` if it names a page of this site. A browser reads `//name` and `/\name` as the name of another one.
fn of_this_site(to: &str) -> &str {
    let path = to.strip_prefix('/').filter(|rest| !rest.starts_with(['/', '\\']));
    if path.is_some() && to.parse::<PathAndQuery>().is_ok() {
        to
    } else {
        HOME
    }
}

/// Reply to a request whose token is missing or does not suffice: the form, with the reason. It leads to the address `to`.
pub(super) fn refused(status: &Status, to: &str) -> Response {
    (
        code(status),
        page(
            &format!("{}.", capital(status.message().trim_end_matches('.'))),
            to,
        ),
    )
        .into_response()
}

fn code(status: &Status) -> StatusCode {
    match status.code() {
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNAUTHORIZED,
    }
}

fn page(reason: &str, to: &str) -> Markup {
    let body = html! {
        main #main.bare {
            h1 { "Sign in" }
            p #reason { (with_code(reason)) }
            // `post`, so that no token is written into an address.
            form.login.card method="post" action="/login" {
                input type="hidden" name="to" value=(to);
                // A store of passwords files the token under this name.
                input type="text" autocomplete="username" value="minuet" hidden;
                label { span { "Token" }
                    input.mono name="token" type="password" required autofocus autocomplete="current-password"
                        spellcheck="false" aria-describedby="reason";
                }
                button.primary type="submit" { "Sign in" }
            }
            p.quiet.small {
                "Tokens are lines of the file that " code { "security.tokens" } " of the run names; with " code { "--make-token" }
                " the studio prints the one that it has made. The right "
                code { "sample" } " shows the run, " code { "evaluate" } " plays."
            }
        }
    };
    document("Sign in", &[], &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_no_other_site() {
        for page in ["/", "/games?sort=longest&model=a%20b", "/learn?at=1//2", "/a:b"] {
            assert_eq!(of_this_site(page), page);
        }
        for other in [
            "",
            "games",
            "//evil.example",
            "/\\evil.example/",
            "https://evil.example/",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/a\r\nSet-Cookie: a=b",
        ] {
            assert_eq!(of_this_site(other), "/", "{other:?}");
        }
    }
}
