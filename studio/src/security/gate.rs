//! [`Gate`]: the rights of a request beyond this machine. A person posts a token once, and a cookie represents it from then on.
//!
//! The cookie is a random number that this process keeps with the digest of the token. It ends with the token, with the browser's
//! session, or with the process. The file of tokens is read again while the studio runs, and open streams end with their token.

use std::{collections::VecDeque, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use futures::StreamExt as _;
use parking_lot::Mutex;
use service::security::{
    known::{Held, KnownTokens},
    methods::Access,
    tokens::{Right, TokenDigest},
};
use tonic::Status;

use super::login;

/// Most people who are signed in. One more signs out the one who has been signed in for longest.
const SESSIONS: usize = 1024;
/// Media type of streams of events.
const EVENTS: &str = "text/event-stream";

/// Checks the token behind each request. Clones share the sessions.
#[derive(Clone, Debug)]
pub struct Gate {
    tokens: KnownTokens,
    cookie: Arc<str>,
    is_secure: bool,
    sessions: Arc<Mutex<VecDeque<Session>>>,
}

/// A person who is signed in.
#[derive(Debug)]
struct Session {
    /// Digest of the cookie's value.
    id: TokenDigest,
    token: TokenDigest,
}

impl Gate {
    /// Makes the gate of a studio on this port. Browsers share cookies between ports, so its name has the port.
    pub fn new(tokens: KnownTokens, is_secure: bool, port: u16) -> Self {
        // A browser takes a cookie with this prefix over TLS and from this very host only.
        let prefix = if is_secure { "__Host-" } else { "" };
        Self {
            tokens,
            cookie: format!("{prefix}minuet-{port}").into(),
            is_secure,
            sessions: Arc::default(),
        }
    }

    /// Begins a session with a token, and returns the value of `Set-Cookie`.
    ///
    /// # Errors
    /// The status of [`Held::check`] if the token is not known.
    pub fn sign_in(&self, token: &str) -> Result<String, Status> {
        let token = TokenDigest::of(token);
        self.tokens.held(token, Access::AnyToken).check()?;
        let random: [u8; 32] = rand::random();
        let id = proto::ids::hex(&random);
        let mut sessions = self.sessions.lock();
        if sessions.len() >= SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(Session {
            id: TokenDigest::of(&id),
            token,
        });
        let secure = if self.is_secure { "; Secure" } else { "" };
        Ok(format!(
            "{}={id}; Path=/; HttpOnly; SameSite=Strict{secure}",
            self.cookie
        ))
    }

    /// The token behind a request, which must grant `right`. `None`: nobody is signed in.
    fn held(&self, headers: &HeaderMap, right: Right) -> Option<Held> {
        let id = TokenDigest::of(cookie(headers, &self.cookie)?);
        let sessions = self.sessions.lock();
        let session = sessions.iter().find(|session| session.id == id)?;
        Some(self.tokens.held(session.token, Access::Right(right)))
    }
}

/// Value of a cookie.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let mut pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Lets a request through if its token grants the right, or `evaluate` if the request may change something. The stream of events that
/// it opens ends with the token.
pub async fn admit(State((gate, right)): State<(Gate, Right)>, request: Request, next: Next) -> Response {
    let right = if request.method().is_safe() {
        right
    } else {
        Right::Evaluate
    };
    let held = gate.held(request.headers(), right);
    let held = held.ok_or_else(|| Status::unauthenticated("Sign in with a token of this run."));
    let held = match held.and_then(|held| held.check().map(|()| held)) {
        Ok(held) => held,
        Err(status) => return login::refused(&status, &login::wanted(&request)),
    };
    let reply = next.run(request).await;
    let media = reply.headers().get(header::CONTENT_TYPE);
    let is_stream = media.is_some_and(|media| media.as_bytes().starts_with(EVENTS.as_bytes()));
    match is_stream {
        true => reply.map(|body| Body::from_stream(body.into_data_stream().take_until(held.ended()))),
        false => reply,
    }
}
