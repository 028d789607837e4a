//! The layer that checks the token of each call.
//!
//! Health needs no token, because probes have none. If the server has tokens, every other call, reflection included, needs one;
//! each service states the right that a call needs ([`Rights`]).

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{Either, Ready, ready};
use parking_lot::RwLock;
use tonic::{Status, body::Body, codegen::http};
use tower::{Layer, Service};

use super::tokens::{Right, Tokens};

/// Returns the right that a call needs, by its path (`/package.Service/Method`); `None`: any token.
pub type Rights = fn(&str) -> Option<Right>;

/// Prefix of paths that need no token.
const OPEN: &str = "/grpc.health.v1.Health/";
/// Prefix of paths that need a token with any right.
const REFLECTION: &str = "/grpc.reflection.";
const SCHEME: &str = "Bearer ";

/// Checks the tokens of calls. A server without tokens accepts every call.
#[derive(Clone, Debug)]
pub struct Guard {
    pub(crate) tokens: Option<Arc<RwLock<Tokens>>>,
    pub(crate) rights: Rights,
}

impl Guard {
    /// Checks that a call of `path` with this `authorization` header is allowed.
    ///
    /// # Errors
    /// UNAUTHENTICATED without a known token, PERMISSION_DENIED if the token lacks the right.
    pub fn check(&self, path: &str, authorization: Option<&http::HeaderValue>) -> Result<(), Status> {
        let Some(tokens) = &self.tokens else {
            return Ok(());
        };
        if path.starts_with(OPEN) {
            return Ok(());
        }
        let token = authorization
            .ok_or_else(|| {
                refused(
                    "missing",
                    Status::unauthenticated("a token is needed: authorization: Bearer TOKEN"),
                )
            })?
            .to_str()
            .ok()
            .and_then(|value| value.strip_prefix(SCHEME))
            .ok_or_else(|| {
                refused(
                    "malformed",
                    Status::unauthenticated("write authorization: Bearer TOKEN"),
                )
            })?;
        let tokens = tokens.read();
        let holder = tokens
            .holder(token)
            .ok_or_else(|| refused("unknown", Status::unauthenticated("the token is not known here")))?;
        let needed = if path.starts_with(REFLECTION) {
            None
        } else {
            (self.rights)(path)
        };
        match needed {
            Some(right) if !holder.may(right) => {
                let message = format!("`{}` may not do this: it needs the right `{right}`", holder.name);
                Err(refused("right", Status::permission_denied(message)))
            }
            _ => Ok(()),
        }
    }
}

fn refused(reason: &'static str, status: Status) -> Status {
    metrics::counter!("minuet_server_calls_denied_total", "reason" => reason).increment(1);
    status
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded {
            guard: self.clone(),
            inner,
        }
    }
}

/// A service behind a [`Guard`].
#[derive(Clone, Debug)]
pub struct Guarded<S> {
    guard: Guard,
    inner: S,
}

impl<S> Service<http::Request<Body>> for Guarded<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let authorization = request.headers().get(http::header::AUTHORIZATION);
        match self.guard.check(request.uri().path(), authorization) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(status) => Either::Right(ready(Ok(status.into_http()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn rights(path: &str) -> Option<Right> {
        (path != "/a.A/Any").then_some(if path == "/a.A/Load" {
            Right::Administer
        } else {
            Right::Evaluate
        })
    }

    #[test]
    fn a_call_needs_a_known_token_with_its_right() {
        let text = "actors evaluate 0123456789abcdef\nlearner sample fedcba9876543210";
        let guard = Guard {
            tokens: Some(Arc::new(RwLock::new(Tokens::parse(text).unwrap()))),
            rights,
        };
        let ask = |path: &str, header: Option<&'static str>| {
            let header = header.map(http::HeaderValue::from_static);
            guard.check(path, header.as_ref()).map_err(|status| status.code())
        };
        let actor = Some("Bearer 0123456789abcdef");
        let learner = Some("Bearer fedcba9876543210");
        assert_eq!(ask("/a.A/Ask", actor), Ok(()));
        assert_eq!(ask("/a.A/Ask", learner), Err(Code::PermissionDenied));
        assert_eq!(ask("/a.A/Load", actor), Err(Code::PermissionDenied));
        assert_eq!(ask("/a.A/Any", learner), Ok(()));
        assert_eq!(ask("/a.A/Any", None), Err(Code::Unauthenticated));
        for wrong in ["Bearer 0123456789abcdeg", "0123456789abcdef", "bearer", "Bearer "] {
            assert_eq!(
                ask("/a.A/Ask", Some(wrong)),
                Err(Code::Unauthenticated),
                "{wrong}"
            );
        }
        assert_eq!(ask("/grpc.health.v1.Health/Check", None), Ok(()));
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert_eq!(ask(reflection, None), Err(Code::Unauthenticated));
        assert_eq!(ask(reflection, learner), Ok(()));
        let open = Guard { tokens: None, rights };
        assert!(open.check("/a.A/Load", None).is_ok());
    }
}
