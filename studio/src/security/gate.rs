//! [`Gate`]: the rights of a request beyond this machine. A person posts a token once, and a cookie represents it from then on.
//!
//! The cookie is a random number that this process keeps with the digest of the token. It ends when the person signs out, with the
//! token, with the browser's session, or with the process. The file of tokens is read again while the studio runs, and open streams end
//! with their session. Sessions and open streams are limited for each token, so that one holder cannot take those of others.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
    sync::Arc,
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures::{FutureExt as _, StreamExt as _, future::select};
use parking_lot::Mutex;
use service::security::{
    known::{Held, KnownTokens},
    methods::Access,
    tokens::{Right, TokenDigest},
};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;

use super::{attempts::Attempts, login};
use crate::failure::Failure;

/// Most sessions of one token. One more ends the oldest of the same token.
const SESSIONS: usize = 32;
/// Most open streams of events of one token.
const STREAMS: usize = 16;
/// Media type of streams of events.
const EVENTS: &str = "text/event-stream";

/// Checks the token behind each request. Clones share the sessions.
#[derive(Clone, Debug)]
pub struct Gate {
    tokens: KnownTokens,
    cookie: Arc<str>,
    is_secure: bool,
    accounts: Arc<Mutex<HashMap<TokenDigest, Account>>>,
    attempts: Arc<Attempts>,
}

/// Sessions and streams of the holders of one token.
#[derive(Debug)]
struct Account {
    /// Sessions, the oldest first.
    sessions: VecDeque<Session>,
    streams: Arc<Semaphore>,
}

/// A person who is signed in.
#[derive(Debug)]
struct Session {
    /// Digest of the cookie's value.
    id: TokenDigest,
    /// Cancelled when the session ends, because `_end` is dropped then.
    ended: CancellationToken,
    _end: DropGuard,
}

/// The token of a request, its session, and the streams that its token may open.
struct Admitted {
    held: Held,
    ended: CancellationToken,
    streams: Arc<Semaphore>,
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
            accounts: Arc::default(),
            attempts: Arc::default(),
        }
    }

    /// Begins a session with a token that `from` has sent, and returns the value of `Set-Cookie`. The session that the request's
    /// `headers` name ends.
    ///
    /// # Errors
    /// The status of [`Held::check`] if the token is not known, RESOURCE_EXHAUSTED if `from` has sent too many wrong ones.
    pub fn sign_in(&self, headers: &HeaderMap, token: &str, from: Option<IpAddr>) -> Result<String, Status> {
        let token = TokenDigest::of(token);
        self.attempts.check(from, || self.is_known(token))?;
        self.sign_out(headers);
        let random: [u8; 32] = rand::random();
        let id = proto::ids::hex(&random);
        let ended = CancellationToken::new();
        let session = Session {
            id: TokenDigest::of(&id),
            _end: ended.clone().drop_guard(),
            ended,
        };
        let mut accounts = self.accounts.lock();
        accounts.retain(|known, account| !account.sessions.is_empty() && self.is_known(*known).is_ok());
        let account = accounts.entry(token).or_insert_with(|| Account {
            sessions: VecDeque::new(),
            streams: Arc::new(Semaphore::new(STREAMS)),
        });
        if account.sessions.len() >= SESSIONS {
            account.sessions.pop_front();
        }
        account.sessions.push_back(session);
        Ok(self.set_cookie(&id, ""))
    }

    /// Ends the session of a request, if it has one, and returns the value of `Set-Cookie` that removes the cookie.
    pub fn sign_out(&self, headers: &HeaderMap) -> String {
        if let Some(id) = self.session(headers) {
            for account in self.accounts.lock().values_mut() {
                account.sessions.retain(|session| session.id != id);
            }
        }
        self.set_cookie("", "; Max-Age=0")
    }

    fn set_cookie(&self, value: &str, age: &str) -> String {
        let secure = if self.is_secure { "; Secure" } else { "" };
        format!(
            "{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{age}",
            self.cookie
        )
    }

    fn is_known(&self, token: TokenDigest) -> Result<(), Status> {
        self.tokens.held(token, Access::AnyToken).check()
    }

    fn session(&self, headers: &HeaderMap) -> Option<TokenDigest> {
        cookie(headers, &self.cookie).map(TokenDigest::of)
    }

    /// The token and the session of a request, which needs `right`. `None`: nobody is signed in.
    fn admitted(&self, headers: &HeaderMap, right: Right) -> Option<Admitted> {
        let id = self.session(headers)?;
        let accounts = self.accounts.lock();
        accounts.iter().find_map(|(token, account)| {
            let session = account.sessions.iter().find(|session| session.id == id)?;
            Some(Admitted {
                held: self.tokens.held(*token, Access::Right(right)),
                ended: session.ended.clone(),
                streams: Arc::clone(&account.streams),
            })
        })
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
/// it opens ends with the session and with the token.
pub async fn admit(State((gate, right)): State<(Gate, Right)>, request: Request, next: Next) -> Response {
    let right = if request.method().is_safe() {
        right
    } else {
        Right::Evaluate
    };
    let admitted = gate.admitted(request.headers(), right);
    let admitted = admitted.ok_or_else(|| Status::unauthenticated("Sign in with a token of this run."));
    let admitted = match admitted.and_then(|admitted| admitted.held.check().map(|()| admitted)) {
        Ok(admitted) => admitted,
        Err(status) => return login::refused(&status, &login::wanted(&request)),
    };
    let reply = next.run(request).await;
    let media = reply.headers().get(header::CONTENT_TYPE);
    if media.is_none_or(|media| !media.as_bytes().starts_with(EVENTS.as_bytes())) {
        return reply;
    }
    let Ok(permit) = admitted.streams.try_acquire_owned() else {
        let busy = "Too many pages are open with this token; close some, and load this one again.";
        return Failure::Busy(busy.into()).into_response();
    };
    let ended = select(
        admitted.held.ended().boxed(),
        admitted.ended.cancelled_owned().boxed(),
    );
    reply.map(|body| {
        let events = body.into_data_stream().take_until(ended);
        Body::from_stream(events.inspect(move |_| {
            let _held_while_open = &permit;
        }))
    })
}
