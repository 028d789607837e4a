//! [`KnownTokens`]: the tokens that a server accepts at the moment, and [`Held`]: the token of an open call.
//!
//! The file of tokens is read again at intervals ([`crate::listener`]). While it cannot be used, for example because it is empty, no
//! token is accepted.

use std::sync::Arc;

use metrics::{Gauge, gauge};
use tokio::sync::watch;
use tonic::Status;

use super::{
    methods::Access,
    tokens::{TokenDigest, Tokens},
};

/// The tokens that a server accepts. Clones share them.
#[derive(Clone, Debug)]
pub struct KnownTokens {
    /// `None` while the file cannot be used.
    now: Arc<watch::Sender<Option<Tokens>>>,
    count: Gauge,
}

/// The token of an open call, and what the call needs.
#[derive(Clone, Debug)]
pub struct Held {
    known: watch::Receiver<Option<Tokens>>,
    digest: TokenDigest,
    access: Access,
}

impl KnownTokens {
    pub(crate) fn new(tokens: Tokens) -> Self {
        let count = gauge!("minuet_server_tokens");
        count.set(tokens.count() as f64);
        Self {
            now: Arc::new(watch::Sender::new(Some(tokens))),
            count,
        }
    }

    /// Replaces the tokens; `None`: no token is accepted.
    pub(crate) fn set(&self, tokens: Option<Tokens>) {
        self.count.set(tokens.as_ref().map_or(0, Tokens::count) as f64);
        self.now.send_if_modified(|now| {
            let has_changed = *now != tokens;
            *now = tokens;
            has_changed
        });
    }

    /// Notes that a call which needs `access` holds the token with this digest, which [`Held::check`] then checks.
    pub fn held(&self, digest: TokenDigest, access: Access) -> Held {
        Held {
            known: self.now.subscribe(),
            digest,
            access,
        }
    }
}

impl Held {
    pub(crate) fn digest(&self) -> TokenDigest {
        self.digest
    }

    /// Checks that the token allows the call.
    ///
    /// # Errors
    /// UNAUTHENTICATED for an unknown token, PERMISSION_DENIED if the token lacks the right, UNAVAILABLE if the server cannot read its
    /// tokens.
    pub fn check(&self) -> Result<(), Status> {
        let known = self.known.borrow();
        let Some(tokens) = &*known else {
            let message = "this server cannot read its file of tokens and refuses every call that needs one";
            return Err(denied("unreadable", Status::unavailable(message)));
        };
        let holder = tokens
            .holder(self.digest)
            .ok_or_else(|| denied("unknown", Status::unauthenticated("the token is not known here")))?;
        match self.access {
            Access::Right(right) if !holder.may(right) => {
                let message = format!("`{}` may not do this: it needs the right `{right}`", holder.name);
                Err(denied("right", Status::permission_denied(message)))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the token no longer allows the call, and returns the status with which the call ends. The status is
    /// UNAVAILABLE, so that a client with a renewed token repeats the call; without one, the repeated call is refused.
    pub async fn ended(mut self) -> Status {
        while self.known.changed().await.is_ok() {
            if let Err(status) = self.check() {
                let message = format!("the call ended because its token did: {}", status.message());
                return Status::unavailable(message);
            }
        }
        // The server is gone, and no token changes any more.
        std::future::pending().await
    }
}

/// Counts a refused call.
pub(super) fn denied(reason: &'static str, status: Status) -> Status {
    metrics::counter!("minuet_server_calls_denied_total", "reason" => reason).increment(1);
    status
}
